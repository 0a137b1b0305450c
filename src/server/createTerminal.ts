/** CreateTerminal and StartTerminal: the two ways a process begins. */
import { holderOf } from '../auth/budgets.js';
import type { Launch } from '../core/access.js';
import { isEnvName, isFixedEnvName } from '../core/envNames.js';
import { DEFAULT_SIZE } from '../core/limits.js';
import { defaultTerminalId, type Name } from '../core/names.js';
import {
  type CreateTerminalRequest,
  CreateTerminalRequestSchema,
  StartTerminalRequestSchema,
  type TerminalService,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import { launchAsAsked } from '../session/bashLaunch.js';
import type { Supervisor } from '../supervisor/api.js';
import type { ServerContext } from './context.js';
import {
  checkCommand,
  checkCwd,
  checkEnv,
  checkLabels,
  checkTitle,
  known,
  parseSize,
} from './fields.js';
import type { Permit } from './gate.js';
import type { Handlers } from './grpc.js';
import { callerOf, perform } from './perform.js';
import { storedTarget } from './refs.js';
import { requestMark } from './requestMark.js';
import { onExitOf, toTerminal } from './wire.js';

export const DEFAULT_SESSION = 'default';

/** What made a plain terminal, as its record says. */
const PLAIN_BACKEND = 'command';

export function createTerminal({
  gate,
  supervisor,
  quota,
}: ServerContext): NonNullable<Handlers<typeof TerminalService>['createTerminal']> {
  return (request, call) => {
    const { owner, agent, session = DEFAULT_SESSION } = request;
    const id = request.id ?? defaultTerminalId(agent as Name, session as Name);
    const ask = {
      action: 'terminal.create',
      target: { kind: 'new', owner, agent, session, id },
      launch: (target: { owner: Name }) => launchOf(request, target.owner),
    } as const;
    return perform(gate, callerOf(call), ask, async (permit) => {
      const { launch = await launchOf(request, permit.target.owner) } = permit;
      const spec = { ...specOf(request, permit), command: launch.command, cwd: launch.cwd };
      return { terminal: toTerminal(await quota.within(permit, () => supervisor.create(spec))) };
    });
  };

  function launchOf(request: CreateTerminalRequest, owner: Name): Promise<Launch> {
    const { command, cwd, env } = request;
    return withDefaults(supervisor, owner, { command, cwd, envNames: settable(env) });
  }
}

/** What would run for a request that leaves command or working directory to the owner's defaults. */
export async function withDefaults(
  supervisor: Pick<Supervisor, 'defaults'>,
  owner: Name,
  asked: Omit<Launch, 'cwd'> & { readonly cwd: string | undefined },
): Promise<Launch> {
  const { command, cwd } = asked;
  if (command.length > 0 && cwd !== undefined) return { ...asked, cwd };
  const defaults = await supervisor.defaults(owner);
  return {
    ...asked,
    command: command.length > 0 ? command : defaults.command,
    cwd: cwd ?? defaults.cwd,
  };
}

/** What would run in a new instance of a stored terminal: of a session, what was asked for. */
export async function storedLaunch(
  supervisor: Pick<Supervisor, 'launchPlan'>,
  { owner, id }: { readonly owner: Name; readonly id: Name },
): Promise<Launch> {
  const { cwd, ...stored } = await supervisor.launchPlan({ owner, id });
  const { command, env } = launchAsAsked(stored);
  return { command, cwd, envNames: Object.keys(env) };
}

/** Checks all fields. */
function specOf(request: CreateTerminalRequest, permit: Permit) {
  checkCommand(request.command);
  if (request.cwd !== undefined) checkCwd(request.cwd);
  checkEnv(request.env);
  checkTitle('title', request.title);
  checkTitle('name', request.name);
  checkLabels('labels', request.labels);
  const { token, grant, target } = permit;
  const { cwdUnder } = grant.constraints;
  const mark = requestMark(permit, 'CreateTerminal', CreateTerminalRequestSchema, request);
  return {
    tuple: target,
    env: request.env,
    size: request.size === undefined ? DEFAULT_SIZE : parseSize('size', request.size),
    title: request.title,
    labels: request.labels,
    name: request.name,
    backend: PLAIN_BACKEND,
    onExit: request.onExit === undefined ? 'leave' : known('on_exit', onExitOf(request.onExit)),
    createdBy: holderOf(token, grant),
    ...(cwdUnder && { cwdUnder }),
    ...(mark && { request: mark }),
  } as const;
}

export function startTerminal({
  gate,
  supervisor,
  quota,
  sessionBook,
}: ServerContext): NonNullable<Handlers<typeof TerminalService>['startTerminal']> {
  return (request, call) => {
    const ask = {
      action: 'terminal.create',
      target: storedTarget(request.terminal),
      launch: (target: { owner: Name; id: Name }) => storedLaunch(supervisor, target),
    } as const;
    return perform(gate, callerOf(call), ask, async (permit) => {
      const { token, grant } = permit;
      const { cwdUnder } = grant.constraints;
      const mark = requestMark(permit, 'StartTerminal', StartTerminalRequestSchema, request);
      const spec = {
        ...(request.size && { size: parseSize('size', request.size) }),
        createdBy: holderOf(token, grant),
        ...(cwdUnder && { cwdUnder }),
        ...(mark && { request: mark }),
      };
      const terminal = await quota.within(permit, () => supervisor.start(permit.key, spec));
      await sessionBook.terminalStarted(permit, terminal);
      return { terminal: toTerminal(terminal) };
    });
  };
}

/** Names that a grant could let a request set; the others are refused as fields. */
export function settable(env: Readonly<Record<string, string>>): string[] {
  return Object.keys(env).filter((name) => isEnvName(name) && !isFixedEnvName(name));
}
