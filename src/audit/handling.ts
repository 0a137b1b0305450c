/** How each intent is handled: what must be durable first, what may use the reserve, what is counted. */
import type { Durability } from './commitQueue.js';
import type { IntentRecord } from './record.js';

const DELEGATE = 'grantty.v1.GrantService/Delegate';
const REVOKE = 'grantty.v1.GrantService/Revoke';
/** Asks what would be decided about an action; nothing happens. */
const CHECK_ACCESS = 'grantty.v1.GrantService/CheckAccess';

/** Whose effects outlast the call, so that a power cut must not leave one without its record. */
const DURABLE_ACTIONS: readonly unknown[] = [
  'terminal.create',
  'terminal.signal',
  'terminal.stop',
  'terminal.kill',
];
const DURABLE_RPCS: readonly string[] = [DELEGATE, REVOKE];

/** Nothing happens after a denial, so its record may be lost in a power cut. */
export function durabilityOf({ decision, action, rpc }: IntentRecord): Durability {
  if (rpc === CHECK_ACCESS) return 'written';
  const lasts = DURABLE_ACTIONS.includes(action) || DURABLE_RPCS.includes(rpc);
  return decision === 'allow' && lasts ? 'synced' : 'written';
}

/** What an operator needs most when a disk is full: to take authority away and to end things. */
export function mayUseReserve({ decision, action, rpc }: IntentRecord): boolean {
  const ends = action === 'terminal.stop' || action === 'terminal.kill' || rpc === REVOKE;
  return decision === 'allow' && rpc !== CHECK_ACCESS && ends;
}

/** Denials that anybody can cause at will, in any number: alike is what has the same key. */
export type Flood = { readonly kind: 'stranger' | 'input'; readonly key: string };

export function floodOf(record: IntentRecord): Flood | undefined {
  const { principal, peer, decision, reason, frame, rpc, target } = record;
  if (decision === 'allow') return undefined;
  if (principal === undefined) {
    return { kind: 'stranger', key: JSON.stringify([peer.address, rpc, reason]) };
  }
  if (frame !== 'input') return undefined;
  const { issuer, jti } = principal;
  const key = [issuer, jti, peer.address, rpc, target?.owner, target?.id, reason];
  return { kind: 'input', key: JSON.stringify(key) };
}
