/** Records as they are read back, by the names that their members have in the file. */

export interface WrittenName {
  readonly iss: string;
  readonly jti: string;
}

export interface WrittenPrincipal extends WrittenName {
  readonly sub: string;
  readonly client_id?: string;
  readonly kid: string;
}

export interface WrittenTarget {
  readonly owner: string;
  readonly agent?: string;
  readonly session?: string;
  readonly terminal: string;
}

interface Base {
  readonly seq: number;
  readonly time_ms: number;
}

export interface WrittenIntent extends Base {
  readonly record: 'intent';
  readonly decision_id: string;
  readonly principal?: WrittenPrincipal;
  readonly actors?: readonly string[];
  readonly lineage?: readonly WrittenName[];
  readonly peer?: { readonly address?: string; readonly certificate?: string };
  readonly rpc: string;
  readonly frame?: string;
  readonly action?: string;
  readonly target?: WrittenTarget;
  readonly decision: 'allow' | 'deny';
  readonly reason?: string;
  readonly grant?: string;
  readonly grant_hash?: string;
  readonly considered?: readonly { readonly grant: string; readonly why: string }[];
  readonly policy?: { readonly hash: string; readonly ids: readonly string[] };
  readonly input_bytes?: number;
}

export interface WrittenOutcome extends Base {
  readonly record: 'outcome';
  readonly decision_id: string;
  readonly status: string;
  readonly reason?: string;
  readonly first_seq?: number;
  readonly last_seq?: number;
  readonly input_bytes?: number;
  readonly output_bytes?: number;
}

export interface WrittenCounted extends Base {
  readonly record: 'counted';
  readonly of: 'input' | 'stranger';
  /** Decision id of the one that was written. */
  readonly like?: string;
  /** Instead of it, where different ones were counted together: what their callers were told. */
  readonly decision_id?: string;
  readonly principal?: WrittenPrincipal;
  readonly actors?: readonly string[];
  readonly peer?: { readonly address?: string };
  readonly rpc?: string;
  readonly action?: string;
  readonly target?: WrittenTarget;
  readonly decision: 'deny';
  readonly reason?: string;
  readonly count: number;
  readonly input_bytes: number;
  readonly first_ms: number;
  readonly last_ms: number;
}

export interface WrittenToken extends Base {
  readonly record: 'token';
  readonly token_hash: string;
  readonly principal: WrittenPrincipal;
  readonly actors?: readonly string[];
  readonly lineage: readonly WrittenName[];
  /** Times are seconds since the Unix epoch. */
  readonly iat: number;
  readonly nbf: number;
  readonly exp: number;
  readonly cnf?: { readonly 'x5t#S256': string };
  readonly ceiling?: { readonly owners: readonly string[]; readonly actions: readonly string[] };
  readonly grants: readonly { readonly id: string; readonly hash: string }[];
  readonly peer?: { readonly address?: string };
}

export interface WrittenGrant extends Base {
  readonly record: 'grant';
  readonly hash: string;
  /** As tokens write grants. */
  readonly grant: unknown;
}

export interface WrittenPolicy extends Base {
  readonly record: 'policy';
  readonly hash: string;
  readonly text: string;
}

export interface WrittenKeys extends Base {
  readonly record: 'keys';
  readonly iss: string;
  readonly added: readonly string[];
  readonly retired: readonly string[];
  readonly stale: boolean;
}

export interface WrittenDelegated extends Base {
  readonly record: 'delegated';
  readonly decision_id: string;
  readonly parent: WrittenName;
  readonly child: WrittenName;
  /** No other token: the request came again, and this server did not know that it is on record. */
  readonly repeated?: true;
}

/** `jti`, `sub` with `issued_before`, or `kid`. */
export interface WrittenRevoked extends Base {
  readonly record: 'revoked';
  readonly decision_id?: string;
  readonly iss: string;
  readonly jti?: string;
  readonly sub?: string;
  readonly issued_before?: number;
  readonly kid?: string;
}

export interface WrittenRecords {
  readonly intent: WrittenIntent;
  readonly outcome: WrittenOutcome;
  readonly counted: WrittenCounted;
  readonly token: WrittenToken;
  readonly grant: WrittenGrant;
  readonly policy: WrittenPolicy;
  readonly keys: WrittenKeys;
  readonly delegated: WrittenDelegated;
  readonly revoked: WrittenRevoked;
}

/** One text for a token's name. */
export function nameKey({ iss, jti }: WrittenName): string {
  return JSON.stringify([iss, jti]);
}
