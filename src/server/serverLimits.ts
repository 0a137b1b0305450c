/** What one server allows its clients together and each. */

export interface ServerLimits {
  readonly maxConnections: number;
  readonly firstCallMs: number;
  /** Milliseconds without a call in progress after which a connection is closed. */
  readonly idleMs: number;
  /** Calls in progress on one connection. */
  readonly maxConcurrentStreams: number;
  readonly maxStreamsPerPrincipal: number;
}

export const defaultLimits: ServerLimits = {
  maxConnections: 1024,
  firstCallMs: 10_000,
  idleMs: 300_000,
  maxConcurrentStreams: 1024,
  maxStreamsPerPrincipal: 256,
};
