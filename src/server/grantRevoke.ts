/** Revoke: the caller's own token or one below it, and everything that descends from it. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Delegation } from '../auth/delegation.js';
import type { VerifiedToken } from '../auth/token.js';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import type { GrantService, TokenId } from '../gen/public/grantty/v1/grant_service_pb.js';
import { authorizeOwn } from './authorize.js';
import type { ServerContext } from './context.js';
import type { Gate } from './gate.js';
import type { Handlers } from './grpc.js';
import { callerOf, recordOutcome, withDecision } from './perform.js';
import type { Revoking } from './revoker.js';

type RevokeHandler = NonNullable<Handlers<typeof GrantService>['revoke']>;

export function revoke({ gate, delegation, revoker }: ServerContext): RevokeHandler {
  return async ({ token: named }, call) => {
    let revoking: Revoking | undefined;
    // In force before it is on record: taking authority away waits for no disk.
    const permit = await authorizeOwn(gate, callerOf(call), (token, decisionId) => {
      const target = targetOf(token, named, delegation);
      const revokedTokens = notYetRevoked(gate, delegation, target);
      revoking = revoker.begin({ kind: 'token', ...target }, decisionId);
      return { revokedTokens, done: revoking.done };
    }).catch(async (error: unknown) => {
      await revoking?.done.catch(() => undefined);
      throw error;
    });
    try {
      const { at, closedStreams } = await permit.judged.done;
      recordOutcome(gate, permit);
      const { revokedTokens } = permit.judged;
      return { revokedAt: timestampFromMs(at), revokedTokens, closedStreams };
    } catch (error) {
      recordOutcome(gate, permit, error);
      throw withDecision(error, permit);
    }
  };
}

interface Target {
  readonly issuer: string;
  readonly jti: string;
}

/** @throws FIELD_INVALID; GRANT_MISSING, the same for a token of another line and for none at all */
function targetOf(
  { issuer, jti }: VerifiedToken,
  named: TokenId | undefined,
  delegation: Delegation | undefined,
): Target {
  const own = { issuer, jti };
  if (named === undefined) return own;
  if (named.jti === '') throw fieldInvalid('token.jti', 'is required');
  const target = { issuer: named.issuer || issuer, jti: named.jti };
  const isOwn = target.issuer === issuer && target.jti === jti;
  if (isOwn || delegation?.isOfLine(target, own)) return target;
  throw new GranttyError(
    'GRANT_MISSING',
    'a token can revoke itself and what descends from it, and nothing else',
  );
}

/** Tokens, the target and what descends from it, that no earlier revocation of this line reached. */
function notYetRevoked(gate: Gate, delegation: Delegation | undefined, target: Target): number {
  const { revocations } = gate;
  const line = [target, ...(delegation?.descendants(target) ?? [])];
  const isRevoked = (token: Target): boolean => {
    if (revocations.isTokenRevoked(token.issuer, token.jti)) return true;
    const parent = delegation?.parentOf(token);
    return parent !== undefined && isRevoked(parent);
  };
  return line.filter((token) => !isRevoked(token)).length;
}
