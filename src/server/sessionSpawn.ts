/** Spawn: a session with an id of the server's, decided about before anything is made. */
import { holderOf } from '../auth/budgets.js';
import { fieldInvalid } from '../core/errors.js';
import type { Name } from '../core/names.js';
import type { SessionService, SpawnRequest } from '../gen/public/grantty/v1/session_service_pb.js';
import { issueSessionId } from '../session/terminalSessionService.js';
import type { ServerContext } from './context.js';
import { DEFAULT_SESSION, settable, withDefaults } from './createTerminal.js';
import { checkCwd, checkEnv, checkLabels, checkTitle, parseSize } from './fields.js';
import type { Permit } from './gate.js';
import type { Handlers } from './grpc.js';
import { callerOf, perform } from './perform.js';
import { toSession } from './sessionWire.js';

type SpawnHandler = NonNullable<Handlers<typeof SessionService>['spawn']>;

export function spawn({
  gate,
  supervisor,
  quota,
  sessions,
  sessionBook,
}: ServerContext): SpawnHandler {
  return (request, call) => {
    const { owner, agent, session = DEFAULT_SESSION } = request;
    const ask = {
      action: 'terminal.create',
      target: { kind: 'new', owner, agent, session, id: issueSessionId() },
      launch: ({ owner }: { owner: Name }) => launchOf(request, owner),
    } as const;
    return perform(gate, callerOf(call), ask, async (permit) => {
      const spec = specOf(request, permit);
      const { session, spawned } = await quota.within(permit, () =>
        sessionBook.spawn(permit.target, spec, call.signal),
      );
      return { session: toSession(session, spawned), motd: spawned.motd };
    });
  };

  function launchOf({ type, cwd, env }: SpawnRequest, owner: Name) {
    const types = sessions.service.listBackends();
    if (!types.includes(type)) throw fieldInvalid('type', `must be one of ${types.join(', ')}`);
    const command = sessions.commandOf(type);
    return withDefaults(supervisor, owner, { command, cwd, envNames: settable(env) });
  }
}

/** Checks all fields. */
function specOf(request: SpawnRequest, { token, grant, target, launch }: Permit) {
  const { type, name, env, size, labels } = request;
  if (request.cwd !== undefined) checkCwd(request.cwd);
  checkEnv(env);
  checkTitle('name', name);
  checkLabels('labels', labels);
  const { cwdUnder } = grant.constraints;
  return {
    type,
    ...(name !== '' && { name }),
    ...(launch && { cwd: launch.cwd }),
    resource: {
      session: target.session,
      env,
      labels,
      ...(size && { size: parseSize('size', size) }),
      createdBy: holderOf(token, grant),
      ...(cwdUnder && { cwdUnder }),
    },
  };
}
