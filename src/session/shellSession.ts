/** A session over a durable terminal: its mirror, its one send, its end. */
import { constants } from 'node:os';
import { GranttyError } from '../core/errors.js';
import type { ExitStatus, OutputEvent } from '../core/event.js';
import type {
  EndResult,
  InputChannel,
  Lease,
  LiveItem,
  Supervisor,
  SurvivingProcess,
  TerminalSnapshot,
} from '../supervisor/api.js';
import type { Clock } from './clock.js';
import type { LeaseSource } from './leaseSource.js';
import { readPage } from './linePage.js';
import type { Mirror } from './mirror.js';
import { PromptMarks } from './promptMarks.js';
import { DEFAULT_TIMEOUT_MS, Readiness } from './readiness.js';
import { RenderedDelta } from './renderedDelta.js';
import type { Screen } from './screen.js';
import type { InputModes } from './screenState.js';
import type { ScreenKey, Screens } from './screens.js';
import { TerminalBackendCleanupError, TerminalSessionError } from './sessionError.js';
import type {
  TerminalBackendSession,
  TerminalReadRequest,
  TerminalReadResult,
  TerminalSendRequest,
  TerminalSessionStatus,
  TerminalSignal,
  TerminalSignalResult,
} from './sessionTypes.js';
import { type SendContext, ShellSend } from './shellSend.js';

/** Milliseconds that processes get between SIGTERM with SIGHUP and SIGKILL when a session is closed. */
const CLOSE_GRACE_MS = 3_000;

interface SessionProcess {
  readonly pid: number | undefined;
  /** Ordinal of the terminal's process instance. */
  readonly instance: number;
}

export interface ShellSessionParts extends SessionProcess {
  readonly supervisor: Supervisor;
  readonly screens: Screens;
  readonly clock: Clock;
  readonly key: ScreenKey;
  readonly input: InputChannel;
  /** Another way in, for when the first was lost with the supervisor's connection. */
  readonly attach: () => Promise<InputChannel>;
  readonly leases: LeaseSource;
  /** Of the prompt marks; absent: the command prints none. */
  readonly secret?: string;
}

export class ShellSession implements TerminalBackendSession {
  motd = '';
  readonly #parts: ShellSessionParts;
  readonly #marks: PromptMarks | undefined;
  readonly #screen: Screen;
  readonly #mirror: Mirror;
  readonly #delta: RenderedDelta;
  readonly #setUp: Readiness;
  #input: InputChannel | undefined;
  /** The process that the session is about now. */
  #process: SessionProcess;
  #exit: ExitStatus | undefined;
  /** Holds the session until nothing of it can reach the terminal any more. */
  #send: ShellSend | undefined;
  #closing: Promise<void> | undefined;

  constructor(parts: ShellSessionParts) {
    this.#parts = parts;
    this.#input = parts.input;
    this.#process = { pid: parts.pid, instance: parts.instance };
    this.#marks = parts.secret === undefined ? undefined : new PromptMarks(parts.secret);
    this.#setUp = new Readiness({
      clock: parts.clock,
      probe: () => this.#probe(),
      timeoutMs: DEFAULT_TIMEOUT_MS,
      severalLines: false,
      firstPrompt: true,
    });
    this.#setUp.begin();
    const { screen, mirror } = parts.screens.observe(parts.key, {
      item: (item) => this.#saw(item),
      rendered: () => this.#send?.sawRendered(),
      failed: (error) => this.#send?.fail(error),
    });
    this.#screen = screen;
    this.#mirror = mirror;
    this.#delta = new RenderedDelta(mirror);
  }

  get pid(): number | undefined {
    return this.#exit ? undefined : this.#process.pid;
  }

  /** Resolves when the session is ready for its first send and its mirror shows that. */
  async primed(): Promise<void> {
    await this.#setUp.reason;
    await this.#screen.catchUp();
    this.motd = this.#delta.take().text;
  }

  /** Resolves when its mirror shows what there is now, whatever the program does. */
  async resumed(): Promise<void> {
    this.#setUp.abandon();
    await this.#screen.catchUp();
    this.#delta.take();
  }

  /** Lets go of the terminal, which lives on. */
  async leave(): Promise<void> {
    this.#setUp.abandon();
    this.#parts.screens.release(this.#screen);
    await this.#input?.[Symbol.asyncDispose]();
  }

  startSend(request: TerminalSendRequest): ShellSend {
    if (this.#send?.holds) {
      throw new TerminalSessionError(
        'SEND_ACTIVE',
        'input or a signal of the last send is on its way',
      );
    }
    if (this.#exit) {
      throw new GranttyError('TERMINAL_EXITED', 'the process of this session has exited');
    }
    this.#screen.resume();
    this.#send = new ShellSend(this.#context(), request);
    return this.#send;
  }

  read(request: TerminalReadRequest): TerminalReadResult {
    return readPage(this.#mirror.lines(), request);
  }

  /** Modes that named keys and pastes depend on, as far as rendered. */
  get inputModes(): InputModes {
    return this.#mirror.modes;
  }

  async signal(signal: TerminalSignal): Promise<TerminalSignalResult> {
    return { delivered: true, targetPgid: await this.#signal(signal, this.#parts.leases) };
  }

  status(): TerminalSessionStatus {
    return this.#exit ? exitedStatus(this.#exit) : { kind: 'running' };
  }

  async restarted({ record: { pid, instance } }: TerminalSnapshot): Promise<void> {
    if (instance <= this.#process.instance) return;
    this.#process = { pid, instance };
    this.#exit = undefined;
    const ended = this.#input;
    this.#input = undefined;
    await ended?.[Symbol.asyncDispose]();
  }

  /** @throws TerminalBackendCleanupError that names the survivors; closing may be tried again. */
  close(_reason: string): Promise<void> {
    this.#closing ??= this.#close().catch((error: unknown) => {
      this.#closing = undefined;
      throw error;
    });
    return this.#closing;
  }

  async #close(): Promise<void> {
    const { supervisor, key, leases } = this.#parts;
    const stop = { graceMs: CLOSE_GRACE_MS, lease: leases.lease('kill') };
    let end = await unlessGone(supervisor.stop(key, stop));
    if (end && !end.quiescent) {
      end = await unlessGone(supervisor.kill(key, { lease: leases.lease('kill') }));
    }
    if (end && !end.quiescent) throw survived(end.survivors);
    this.#setUp.abandon();
    await this.#send?.done.catch(() => {});
    await this.leave();
  }

  #saw(item: LiveItem): void {
    if (item.kind === 'resized') return;
    for (const event of item.events) {
      if (event.type === 'pty.output') this.#sawOutput(event);
      else if ((event.instance ?? 1) >= this.#process.instance) {
        this.#exit = event;
        this.#setUp.sawExit();
        this.#send?.sawExit();
      }
    }
  }

  #sawOutput({ seq, data }: OutputEvent): void {
    this.#setUp.sawOutput();
    this.#send?.sawOutput();
    for (const kind of this.#marks?.push(data) ?? []) {
      this.#setUp.sawMark(kind);
      this.#send?.sawMark(kind, seq);
    }
  }

  #context(): SendContext {
    const { supervisor, key, clock, leases: own } = this.#parts;
    return {
      clock,
      lastSeq: async () => ((await supervisor.get(key))?.nextSeq ?? 1) - 1,
      type: (frame, leases = own) => this.#type(frame, leases.lease('write')),
      typeOnce: async (frame, request, leases = own) => {
        const spec = { data: frame, lease: leases.lease('write'), request };
        return (await supervisor.write(key, spec)).lastSeq;
      },
      interrupt: async (leases = own) => {
        await this.#signal('SIGINT', leases);
      },
      probe: () => this.#probe(),
      caughtUp: async () => {
        await this.#screen.catchUp();
        return this.#mirror.throughSeq;
      },
      takeDelta: () => this.#delta.take(),
      status: () => this.status(),
    };
  }

  async #type(frame: Uint8Array, lease: Lease): Promise<void> {
    this.#input ??= await this.#parts.attach();
    const input = this.#input;
    try {
      await input.send(frame, lease);
    } catch (error) {
      const lost = error instanceof GranttyError && error.reason === 'SUPERVISOR_UNAVAILABLE';
      if (lost && this.#input === input) this.#input = undefined;
      throw error;
    }
  }

  #probe() {
    return this.#parts.supervisor.foreground(this.#parts.key);
  }

  async #signal(signal: TerminalSignal, leases: LeaseSource): Promise<number> {
    const { supervisor, key } = this.#parts;
    const { processGroup } = await supervisor.signal(key, signal, leases.lease('signal'));
    return processGroup;
  }
}

function exitedStatus({ exitCode, signal }: ExitStatus): TerminalSessionStatus {
  if (signal !== undefined && isSignal(signal)) return { kind: 'exited', exitCode: null, signal };
  return {
    kind: 'exited',
    exitCode: signal === undefined ? (exitCode ?? null) : null,
    signal: null,
  };
}

function isSignal(name: string): name is NodeJS.Signals {
  return Object.hasOwn(constants.signals, name);
}

/** A terminal that is gone needs no end. */
async function unlessGone(end: Promise<EndResult>): Promise<EndResult | undefined> {
  try {
    return await end;
  } catch (error) {
    if (error instanceof GranttyError && error.reason === 'TERMINAL_NOT_FOUND') return undefined;
    throw error;
  }
}

function survived(survivors: readonly SurvivingProcess[]): TerminalBackendCleanupError {
  const names = survivors.map(({ pid, comm }) => `${pid} (${comm})`).join(', ');
  const message = `processes of the session still live: ${names}`;
  return new TerminalBackendCleanupError(message, undefined, survivors);
}
