/** Sessions as a test drives them, whatever carries the calls: in this process, or over gRPC. */
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  type SendResponse,
  type Session,
  WaitReason,
} from '../../src/gen/public/grantty/v1/session_service_pb.js';
import { Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { AgentScope } from '../../src/session/agent.js';
import { TerminalBackendCleanupError } from '../../src/session/sessionError.js';
import type {
  TerminalSessionStatus,
  TerminalSignal,
  TerminalWaitReason,
} from '../../src/session/sessionTypes.js';
import type { ShellSend } from '../../src/session/shellSend.js';
import type { Supervisor } from '../../src/supervisor/api.js';
import { startSessions } from '../session/liveSessions.js';
import { plainBash } from './plainBash.js';
import { name, owner } from './registry.js';
import { startService } from './service.js';

export interface Sent {
  /** All that was printed, from the send's begin to its end. */
  readonly text: string;
  /** What of it the result itself had. */
  readonly viewport: string;
  readonly waitReason: TerminalWaitReason;
  readonly status: TerminalSessionStatus;
  readonly truncated: boolean;
}

export interface SendOptions {
  /** Absent: Enter is pressed. */
  readonly submit?: boolean;
  readonly timeoutMs?: number;
}

export interface BegunSend {
  readonly done: Promise<Sent>;
  /** Resolves when this was printed. */
  printed(pattern: RegExp): Promise<void>;
  cancel(): Promise<boolean>;
}

export interface Page {
  readonly text: string;
  readonly totalLines: number;
  readonly lineBegin: number;
  readonly lineEnd: number;
  readonly truncated: boolean;
}

export interface DrivenSession {
  readonly id: string;
  readonly motd: string;
  readonly pid: number | undefined;
  begin(text: string, options?: SendOptions): Promise<BegunSend>;
  send(text: string, options?: SendOptions): Promise<Sent>;
  read(request?: { readonly offset?: number; readonly count?: number }): Promise<Page>;
  /** @returns the process group that it was delivered to */
  signal(signal: TerminalSignal): Promise<number>;
  close(): Promise<boolean>;
}

export interface Listed {
  readonly id: string;
  readonly name: string | undefined;
  readonly type: string;
  readonly pid: number | undefined;
  readonly status: TerminalSessionStatus;
}

export interface SpawnOptions {
  readonly type?: string;
  readonly name?: string;
  readonly cwd?: string;
  readonly agent?: string;
  readonly signal?: AbortSignal;
  readonly env?: Readonly<Record<string, string>>;
}

export interface SessionDriver extends AsyncDisposable {
  readonly supervisor: Supervisor;
  backends(): Promise<readonly string[]>;
  spawn(options?: SpawnOptions): Promise<DrivenSession>;
  /** The session of that id, as this agent sees it; nothing is looked up. */
  of(id: string, agent?: string): DrivenSession;
  list(agent?: string): Promise<readonly Listed[]>;
  hasActivity(agent?: string): Promise<boolean>;
  /** Closes a session of which something survives, and gives who does. */
  survivorsOf(session: DrivenSession): Promise<readonly number[]>;
  /** What refusals are called here. */
  readonly codes: Readonly<Record<RefusalCode, string>>;
  /** Code of a refusal: the library's where there is one, else the contract's reason. */
  codeOf(error: unknown): string | undefined;
}

type RefusalCode = 'DUPLICATE_NAME' | 'FOREIGN_SESSION' | 'NO_BACKEND' | 'NO_SESSION';

const AGENT = 'coder';

export async function inProcess(): Promise<SessionDriver> {
  const live = await startSessions();
  const { service, supervisor } = live;
  const agents = new Map([[AGENT, live.agent]]);
  const scopeOf = (agent: string) => {
    const scope = agents.get(agent) ?? new AgentScope(owner, name(agent));
    agents.set(agent, scope);
    return scope;
  };
  const driven = (
    agent: string,
    id: string,
    rest: Pick<DrivenSession, 'motd' | 'pid'>,
  ): DrivenSession => {
    const scope = scopeOf(agent);
    const sessionId = id as never;
    const begin = async (text: string, { submit = true, timeoutMs }: SendOptions = {}) => {
      const limit = timeoutMs === undefined ? {} : { timeoutMs };
      const send = service.startSend(scope, sessionId, { text, submit, ...limit }) as ShellSend;
      let text_ = '';
      const read = () => {
        text_ += send.readOutput().delta;
        return text_;
      };
      const done = send.done.then((result) => ({
        text: text_ + result.viewport,
        viewport: result.viewport,
        waitReason: result.waitReason,
        status: result.sessionStatus,
        truncated: result.truncated,
      }));
      done.catch(() => {});
      await send.started;
      return {
        done,
        async printed(pattern: RegExp) {
          while (!pattern.test(read())) {
            await Promise.race([send.changed(), settledBefore(pattern, done)]);
          }
        },
        cancel: async () => send.cancel(),
      };
    };
    return {
      id,
      ...rest,
      begin,
      send: async (text, options) => (await begin(text, options)).done,
      read: async (request = {}) => service.read(scope, sessionId, request),
      signal: async (signal) => (await service.signal(scope, sessionId, signal)).targetPgid,
      close: () => service.kill(scope, sessionId),
    };
  };
  return {
    supervisor,
    backends: async () => service.listBackends(),
    async spawn({ type = 'shell', agent = AGENT, signal, env, ...request } = {}) {
      const resource = env ? { resource: { env } } : {};
      const spawning = { type, ...request, ...resource };
      const { sessionId, motd, pid } = await service.spawn(scopeOf(agent), spawning, signal);
      return driven(agent, sessionId, { motd, pid });
    },
    of: (id, agent = AGENT) => driven(agent, id, { motd: '', pid: undefined }),
    list: async (agent = AGENT) =>
      service.list(scopeOf(agent)).map(({ sessionId, name, type, pid, status }) => ({
        id: sessionId,
        name,
        type,
        pid,
        status,
      })),
    hasActivity: async (agent = AGENT) => service.hasOwnerActivity(scopeOf(agent)),
    async survivorsOf(session) {
      const failed: unknown = await session.close().catch((error: unknown) => error);
      if (!(failed instanceof TerminalBackendCleanupError)) throw failed;
      return failed.survivors.map(({ pid }) => pid);
    },
    codes: {
      DUPLICATE_NAME: 'DUPLICATE_NAME',
      FOREIGN_SESSION: 'FOREIGN_SESSION',
      NO_BACKEND: 'NO_BACKEND',
      NO_SESSION: 'NO_SESSION',
    },
    codeOf: (error) => (error as { code?: string }).code,
    [Symbol.asyncDispose]: () => live[Symbol.asyncDispose](),
  };
}

const waitReasons: ReadonlyMap<WaitReason, TerminalWaitReason> = new Map([
  [WaitReason.STDIN_READ, 'stdin_read'],
  [WaitReason.INFERRED_IDLE, 'inferred_idle'],
  [WaitReason.TIMEOUT, 'timeout'],
  [WaitReason.SESSION_EXIT, 'session_exit'],
]);

const signals: Readonly<Record<TerminalSignal, Signal>> = {
  SIGINT: Signal.INT,
  SIGTERM: Signal.TERM,
  SIGKILL: Signal.KILL,
  SIGTSTP: Signal.TSTP,
  SIGHUP: Signal.HUP,
};

export async function overGrpc(): Promise<SessionDriver> {
  const service = await startService({ bash: plainBash });
  const client = service.client();
  const driven = (
    id: string,
    agent: string,
    rest: Pick<DrivenSession, 'motd' | 'pid'>,
  ): DrivenSession => {
    const by = agent === AGENT ? client : service.client({ resource: { agent } });
    const ref = { id };
    const begin = async (text: string, { submit = true, timeoutMs }: SendOptions = {}) => {
      const timeout = timeoutMs === undefined ? {} : { timeout: durationFromMs(timeoutMs) };
      return follow(by.sessions.send({ terminal: ref, text, submit, ...timeout }), (sendId) =>
        by.sessions.cancelSend({ terminal: ref, sendId }),
      );
    };
    return {
      id,
      ...rest,
      begin,
      send: async (text, options) => (await begin(text, options)).done,
      read: (request = {}) => by.sessions.readScrollback({ terminal: ref, ...request }),
      signal: async (signal) =>
        (await by.terminals.signal({ terminal: ref, signal: signals[signal] })).targetPgid,
      close: async () => (await by.sessions.close({ terminal: ref })).closed,
    };
  };
  return {
    supervisor: service.supervisor,
    backends: async () => (await client.sessions.listBackends({})).types,
    async spawn({ type = 'shell', agent = AGENT, signal, ...request } = {}) {
      const call = signal ? { signal } : {};
      const { session, motd } = await client.sessions.spawn({ agent, type, ...request }, call);
      return driven(session?.terminal?.id ?? '', AGENT, { motd, pid: session?.pid });
    },
    of: (id, agent = AGENT) => driven(id, agent, { motd: '', pid: undefined }),
    list: async (agent = AGENT) =>
      (await client.sessions.listSessions({ agent })).sessions.map((session) => ({
        id: session.terminal?.id ?? '',
        name: session.name === '' ? undefined : session.name,
        type: session.type,
        pid: session.pid,
        status: statusOf(session.status),
      })),
    hasActivity: async (agent = AGENT) =>
      (await client.sessions.hasOwnerActivity({ agent })).active,
    async survivorsOf({ id }) {
      const answer = await client.sessions.close({ terminal: { id } });
      expect(answer).toMatchObject({ closed: false, quiescent: false });
      return answer.survivors.map(({ pid }) => pid);
    },
    codes: {
      DUPLICATE_NAME: 'TERMINAL_EXISTS',
      // Who may not use it is not told whether it exists.
      FOREIGN_SESSION: 'GRANT_MISSING',
      NO_BACKEND: 'FIELD_INVALID',
      NO_SESSION: 'TERMINAL_NOT_FOUND',
    },
    codeOf: (error) => (error as { reason?: string }).reason,
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  };
}

/** Resolves when the send has started. */
async function follow(
  stream: AsyncIterable<SendResponse>,
  cancel: (sendId: string) => Promise<{ readonly cancelled: boolean }>,
): Promise<BegunSend> {
  let text = '';
  let wake = () => {};
  const changed = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  const events = stream[Symbol.asyncIterator]();
  const first = (await events.next()).value?.event;
  if (first?.case !== 'started') throw new Error(`it began with ${first?.case}`);
  const done = (async (): Promise<Sent> => {
    for (;;) {
      const { value } = await events.next();
      const event = value?.event;
      if (event?.case === 'delta') {
        text += event.value.text;
        wake();
      } else if (event?.case === 'result') {
        const { viewport, waitReason, sessionStatus, truncated } = event.value;
        const reason = waitReasons.get(waitReason);
        if (reason === undefined) throw new Error(`there is no reason ${waitReason}`);
        const status = statusOf(sessionStatus);
        await events.next();
        return { text: text + viewport, viewport, waitReason: reason, status, truncated };
      } else if (event?.case !== 'heartbeat') throw new Error(`it ended with ${event?.case}`);
    }
  })();
  done.catch(() => {});
  return {
    done,
    async printed(pattern) {
      while (!pattern.test(text)) await Promise.race([changed(), settledBefore(pattern, done)]);
    },
    cancel: async () => (await cancel(first.value.sendId)).cancelled,
  };
}

/** Rejects when the send settles: what is waited for does not come any more. */
export async function settledBefore(pattern: RegExp, done: Promise<object>): Promise<never> {
  throw new Error(`the send settled before ${pattern}: ${JSON.stringify(await done)}`);
}

function statusOf(status: Session['status']): TerminalSessionStatus {
  if (status?.kind.case !== 'exited') return { kind: 'running' };
  const { exitCode = null, signal } = status.kind.value;
  return { kind: 'exited', exitCode, signal: signal === '' ? null : (signal as NodeJS.Signals) };
}
