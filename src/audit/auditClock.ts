/** Time as the trail sees it, so that tests can move it. */

export interface AuditClock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Runs `task` once after `ms` milliseconds unless the returned function is called before. */
  after(ms: number, task: () => void): () => void;
}
