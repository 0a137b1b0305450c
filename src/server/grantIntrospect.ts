/** Introspect: what the caller's token says. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { GrantService } from '../gen/public/grantty/v1/grant_service_pb.js';
import { admit } from './authorize.js';
import type { ServerContext } from './context.js';
import { toGrant, toLineage, toTokenId } from './grantWire.js';
import type { Handlers } from './grpc.js';
import { callerOf } from './perform.js';

type IntrospectHandler = NonNullable<Handlers<typeof GrantService>['introspect']>;

export function introspect({ gate, delegation }: ServerContext): IntrospectHandler {
  return async (_request, call) => {
    const token = await admit(gate, callerOf(call));
    const { issuer, subject, actors, grants, lineage } = token;
    return {
      token: toTokenId(token),
      principal: { issuer, subject, actors: [...actors] },
      clientId: token.clientId,
      audience: token.audience,
      issuedAt: timestampFromMs(token.issuedAt * 1000),
      notBefore: timestampFromMs(token.notBefore * 1000),
      expiresAt: timestampFromMs(token.expiresAt * 1000),
      certificateThumbprint: token.cnf?.x5tS256 ?? '',
      grants: grants.map(toGrant),
      lineage: toLineage(token, delegation?.maxDepthOf(token) ?? lineage.length),
    };
  };
}
