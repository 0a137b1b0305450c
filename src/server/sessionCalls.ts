/** SessionService: all its calls, and those of them that are short. */
import type { VerifiedToken } from '../auth/token.js';
import { coversAgent } from '../core/grant.js';
import { parseName } from '../core/names.js';
import type {
  ListSessionsRequest,
  SessionService,
} from '../gen/public/grantty/v1/session_service_pb.js';
import { admit, authorizeOwn } from './authorize.js';
import type { ServerContext } from './context.js';
import { checkTitle } from './fields.js';
import type { Handlers } from './grpc.js';
import { callerOf, perform, recordOutcome, withDecision } from './perform.js';
import { storedTarget } from './refs.js';
import { grantMissing, ownerOf, seconds } from './resolveTarget.js';
import { sessionScreens } from './sessionScreens.js';
import { sessionSendCalls } from './sessionSendCalls.js';
import { spawn } from './sessionSpawn.js';
import { toSession } from './sessionWire.js';
import { authorizeItems, isPermitted } from './sight.js';
import { toProcess } from './wire.js';

export function sessionCalls(context: ServerContext): Required<Handlers<typeof SessionService>> {
  const { gate, sessions, sessionBook } = context;
  return {
    ...sessionScreens(context),
    ...sessionSendCalls(context),
    spawn: spawn(context),

    async listBackends(_request, call) {
      await admit(gate, callerOf(call));
      return { types: sessions.service.listBackends() };
    },

    async listSessions(request, call) {
      const sight = await authorizeItems(gate, callerOf(call), 'terminal.read');
      if (!sight.reachesAnything) return { sessions: [] };
      const listed = await sessionBook.list(pairOf(request, sight.token));
      return {
        sessions: listed
          .filter(({ tuple }) => sight.sees(tuple))
          .map((session) => toSession(session, session.snapshot)),
      };
    },

    async hasOwnerActivity(request, call) {
      const caller = callerOf(call);
      const action = 'terminal.read';
      const decided = await authorizeOwn(gate, caller, (token) => {
        const reads = token.grants.some(({ actions }) => actions.includes(action));
        const pair = reads ? pairOf(request, token) : undefined;
        if (pair && coversAgent(token.grants, action, pair.owner, pair.agent, seconds(gate))) {
          return pair;
        }
        throw grantMissing(action);
      });
      try {
        const tuples = await sessionBook.active(decided.judged);
        recordOutcome(gate, decided);
        const active = tuples.some((target) =>
          isPermitted(gate, caller, decided.token, { action, target }),
        );
        return { active };
      } catch (error) {
        recordOutcome(gate, decided, error);
        throw withDecision(error, decided);
      }
    },

    close(request, call) {
      const ask = { action: 'terminal.kill', target: storedTarget(request.terminal) } as const;
      return perform(gate, callerOf(call), ask, async (permit) => {
        checkTitle('reason', request.reason);
        const session = await sessionBook.find(permit);
        const reason = request.reason || 'asked for by a client';
        const { closed, survivors } = await sessionBook.close(session, reason, permit.lease);
        return {
          closed,
          survivors: survivors.map(toProcess),
          quiescent: survivors.length === 0,
          // A session says that it found nothing living, not how it looked.
          quiescenceCertain: false,
        };
      });
    },
  };
}

/** To be asked once the caller is known to read something. @throws FIELD_INVALID */
function pairOf(
  { owner, agent }: Pick<ListSessionsRequest, 'owner' | 'agent'>,
  token: VerifiedToken,
) {
  return {
    owner: owner === undefined ? ownerOf(token) : parseName('owner', owner),
    agent: parseName('agent', agent),
  };
}
