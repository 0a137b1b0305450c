/** Delegate: a narrower token for another actor. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { parseConfirmation } from '../auth/claims.js';
import type { DelegationOrder, NewToken } from '../auth/delegation.js';
import type { VerifiedToken } from '../auth/token.js';
import { fieldInvalid } from '../core/errors.js';
import {
  type DelegateRequest,
  DelegateRequestSchema,
  type GrantService,
} from '../gen/public/grantty/v1/grant_service_pb.js';
import { authorizeOwn } from './authorize.js';
import type { ServerContext } from './context.js';
import { cannotDelegate, fromGrants, toGrant, toLineage, toTokenId } from './grantWire.js';
import type { Handlers } from './grpc.js';
import { callerOf, recordOutcome, withDecision } from './perform.js';
import { markOf } from './requestMark.js';
import { inWholeSeconds } from './times.js';

/** Bytes. */
const MAX_ACTOR_BYTES = 256;

type DelegateHandler = NonNullable<Handlers<typeof GrantService>['delegate']>;

export function delegate({ gate, delegation, clock }: ServerContext): DelegateHandler {
  return async (request, call) => {
    const permit = await authorizeOwn(gate, callerOf(call), (token) => {
      if (delegation === undefined) throw cannotDelegate();
      const { issuer, keyId } = delegation.signer;
      if (gate.revocations.isKeyRevoked(issuer, keyId)) throw cannotDelegate();
      const order = orderOf(request, gate.pop === 'required');
      return {
        claims: delegation.claimsFor(token, order, clock.now()),
        mark: markOf(
          [token.issuer, token.subject, 'Delegate', token.jti],
          DelegateRequestSchema,
          request,
        ),
        sign: delegation.sign.bind(delegation),
      };
    });
    const { token, judged } = permit;
    try {
      const child = await judged.sign(judged.claims, judged.mark, (made) =>
        gate.audit.change({
          change: 'delegated',
          timeMs: clock.now(),
          decisionId: permit.decisionId,
          parent: toTokenId(token),
          child: principalOf(made),
          ...(made.repeated && { repeated: true }),
        }),
      );
      recordOutcome(gate, permit);
      return answerOf(child);
    } catch (error) {
      recordOutcome(gate, permit, error);
      throw withDecision(error, permit);
    }
  };
}

/** @throws FIELD_INVALID */
function orderOf(request: DelegateRequest, mustBind: boolean): DelegationOrder {
  const { actor, grants, lifetime, maxDepth, certificateThumbprint } = request;
  if (actor === '' || Buffer.byteLength(actor) > MAX_ACTOR_BYTES) {
    throw fieldInvalid('actor', `must have 1 to ${MAX_ACTOR_BYTES} bytes`);
  }
  if (certificateThumbprint === '' && mustBind) {
    throw fieldInvalid(
      'certificate_thumbprint',
      'is required: this server takes bound tokens only',
    );
  }
  return {
    actor,
    grants: fromGrants(grants),
    ...(lifetime && { lifetime: inWholeSeconds('lifetime', lifetime) }),
    ...(maxDepth !== undefined && { maxDepth }),
    ...(certificateThumbprint !== '' && { cnf: bindingOf(certificateThumbprint) }),
  };
}

function bindingOf(thumbprint: string): NonNullable<DelegationOrder['cnf']> {
  try {
    return parseConfirmation({ 'x5t#S256': thumbprint });
  } catch {
    throw fieldInvalid(
      'certificate_thumbprint',
      'must be the SHA-256 of a certificate in base64url',
    );
  }
}

function answerOf({ text, claims, hash, keyId }: NewToken) {
  const token: VerifiedToken = { ...claims, hash, keyId };
  return {
    token: text,
    id: toTokenId(claims),
    expiresAt: timestampFromMs(claims.expiresAt * 1000),
    grants: claims.grants.map(toGrant),
    lineage: toLineage(token, claims.maxDepth ?? claims.lineage.length),
  };
}

function principalOf({ claims, hash, keyId }: NewToken) {
  const { issuer, subject, clientId, jti, actors, lineage } = claims;
  const token = { ...claims, hash };
  return { issuer, subject, clientId, jti, keyId, actors, lineage, token };
}
