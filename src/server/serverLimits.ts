/** What one server allows its clients together and each. */

export interface ServerLimits {
  readonly maxConnections: number;
  readonly firstCallMs: number;
  /** Milliseconds that a request has to be there whole; see `RequestGuard`. */
  readonly requestMs: number;
  /** Milliseconds without a call in progress after which a connection is closed. */
  readonly idleMs: number;
  /** Milliseconds after which a connection is ended, its streams told before. */
  readonly connectionAgeMs: number;
  /** Milliseconds of silence after which a peer is asked for a sign of life, and for its answer. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** Calls in progress on one connection. */
  readonly maxConcurrentStreams: number;
  readonly maxStreamsPerPrincipal: number;
}

export const defaultLimits: ServerLimits = {
  maxConnections: 1024,
  firstCallMs: 10_000,
  requestMs: 20_000,
  idleMs: 300_000,
  connectionAgeMs: 86_400_000,
  keepaliveMs: 60_000,
  keepaliveTimeoutMs: 20_000,
  maxConcurrentStreams: 1024,
  maxStreamsPerPrincipal: 256,
};
