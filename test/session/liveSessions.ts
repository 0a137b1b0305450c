/** A session service over a real in-process supervisor, with workers from dist/. */
import { AgentScope } from '../../src/session/agent.js';
import { type Clock, monotonicClock } from '../../src/session/clock.js';
import { LogEvents } from '../../src/session/logEvents.js';
import { Screens } from '../../src/session/screens.js';
import { ScreenWorkers } from '../../src/session/screenWorkers.js';
import type {
  TerminalResourceRequest,
  TerminalSendRequest,
} from '../../src/session/sessionTypes.js';
import { ShellBackend } from '../../src/session/shellBackend.js';
import type { ShellSend } from '../../src/session/shellSend.js';
import { TerminalSessionService } from '../../src/session/terminalSessionService.js';
import { resourceDir } from '../../src/store/paths.js';
import { LogReader } from '../../src/store/reader/logReader.js';
import type { Supervisor } from '../../src/supervisor/api.js';
import { plainBash } from '../support/plainBash.js';
import { name, owner, startRegistry } from '../support/registry.js';

/** Built by `make build`: a worker cannot run what the test runner compiles. */
export const workerEntry = new URL('../../dist/session/screenWorker.js', import.meta.url);

export interface LiveSessions extends AsyncDisposable {
  readonly supervisor: Supervisor;
  readonly events: LogEvents;
  readonly workers: ScreenWorkers;
  readonly screens: Screens;
  readonly service: TerminalSessionService;
  readonly agent: AgentScope;
  /** A session of the test's own; the shell without a command. */
  spawn(resource?: TerminalResourceRequest): Promise<LiveSession>;
}

export interface LiveSession {
  readonly id: string;
  readonly motd: string;
  readonly pid: number | undefined;
  start(request: Partial<TerminalSendRequest>): ShellSend;
  /** Types a line and waits. */
  send(text: string, rest?: Partial<TerminalSendRequest>): ShellSend['done'];
  read(count?: number, offset?: number): ReturnType<TerminalSessionService['read']>;
  list(): ReturnType<TerminalSessionService['list']>[number] | undefined;
  kill(): Promise<boolean>;
}

export async function startSessions(clock: Clock = monotonicClock): Promise<LiveSessions> {
  const registry = await startRegistry();
  const { supervisor, stateDir } = registry;
  const events = new LogEvents(supervisor, async (key) => {
    const terminal = await supervisor.get(key);
    if (!terminal) throw new Error(`no terminal ${key.id}`);
    return LogReader.open(resourceDir(stateDir, terminal.record));
  });
  const workers = new ScreenWorkers({ entry: workerEntry, threads: 1 });
  const screens = new Screens({ source: events, workers, clock });
  const service = new TerminalSessionService();
  service.registerBackend(new ShellBackend({ supervisor, screens, clock, bash: plainBash }));
  const agent = new AgentScope(owner, name('coder'));
  return {
    supervisor,
    events,
    workers,
    screens,
    service,
    agent,
    async spawn(resource = {}) {
      const { sessionId, motd, pid } = await service.spawn(agent, { type: 'shell', resource });
      const start = (request: Partial<TerminalSendRequest>) =>
        service.startSend(agent, sessionId, { text: '', submit: false, ...request }) as ShellSend;
      return {
        id: sessionId,
        motd,
        pid,
        start,
        send: (text, rest = {}) => start({ text, submit: true, ...rest }).done,
        read: (count = 500, offset = 0) => service.read(agent, sessionId, { count, offset }),
        list: () => service.list(agent).find((each) => each.sessionId === sessionId),
        kill: () => service.kill(agent, sessionId),
      };
    },
    async [Symbol.asyncDispose]() {
      await service.dispose();
      screens[Symbol.dispose]();
      await workers[Symbol.asyncDispose]();
      await registry[Symbol.asyncDispose]();
    },
  };
}
