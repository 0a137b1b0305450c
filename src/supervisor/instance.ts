/** One process instance of a terminal: its PTY, its open log, and the pipeline between them. */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { GranttyError } from '../core/errors.js';
import type { ExitEvent, ExitStatus, TerminalSize } from '../core/event.js';
import type { ExitReason } from '../core/exitReason.js';
import type { SignalName } from '../core/signals.js';
import type { TerminalRecord } from '../core/terminal.js';
import type { Cgroup } from '../pty/cgroup.js';
import { resolveCommand, resolveCwd } from '../pty/command.js';
import { childEnvironment } from '../pty/environment.js';
import { foregroundState, signalForeground } from '../pty/foreground.js';
import { readProcess } from '../pty/processTable.js';
import { findTree, type TreeMarks } from '../pty/processTree.js';
import { openPty, type Pty, type PtyExit, type PtySpec } from '../pty/pty.js';
import type { EventLog } from '../store/eventLog.js';
import { readEnvironment } from '../store/metadata.js';
import type { ForegroundState, LaunchPlan, LiveItem, SignalResult } from './api.js';
import type { SupervisorContext } from './context.js';
import { childIdentity } from './isolation.js';
import { MeteredLog } from './meteredLog.js';
import { OutputPipeline } from './outputPipeline.js';

/** Milliseconds for which written output may be in the kernel only (`log.sync: interval`). */
const SYNC_INTERVAL_MS = 100;

/** Milliseconds for which a child is awaited on its terminal: it may have left it before anybody looked. */
const ON_TERMINAL_MS = 1_000;

/** A child that is ready to be forked: everything that can be checked has been. */
export interface Launch {
  readonly nonce: string;
  readonly spec: PtySpec;
  readonly cgroup: Cgroup | undefined;
}

/**
 * Checks and prepares, as the owner, without any effect.
 * @throws COMMAND_NOT_FOUND, CWD_INVALID, FIELD_INVALID
 */
export async function prepareLaunch(
  context: SupervisorContext,
  record: TerminalRecord,
  request: Readonly<Record<string, string>>,
  cwdUnder: readonly string[] | undefined,
): Promise<Launch> {
  const { owner, agent, session, id, command, size } = record;
  const { account, runAs } = await childIdentity(context.isolation, owner);
  const nonce = randomBytes(16).toString('hex');
  const env = childEnvironment({ account, agent, session, terminal: id, instance: nonce, request });
  const cwd = await resolveCwd(record.cwd, { cwdUnder, runAs });
  const argv = await resolveCommand(command, { path: env.PATH, cwd, runAs });
  const cgroup = await context.cgroups?.make(nonce);
  return {
    nonce,
    cgroup,
    spec: { command: argv, env, cwd, size, ...(runAs && { runAs }), cgroup: cgroup?.path },
  };
}

/** What a next instance of the terminal would run. */
export async function launchPlan(dir: string, record: TerminalRecord): Promise<LaunchPlan> {
  const { command, cwd } = record;
  return { command, cwd, env: await readEnvironment(dir) };
}

export interface InstanceHooks {
  /** Written output, and resizes in their place between it. */
  readonly publish: (item: LiveItem) => void;
  readonly unwritable: (failure: { readonly error: unknown } | undefined) => void;
}

export class Instance {
  readonly marks: TreeMarks;
  /** Resolves once all output and the exit are durably in the log; undefined when that was given up. */
  readonly exit: Promise<ExitEvent | undefined>;
  readonly #pty: Pty;
  readonly #log: EventLog;
  readonly #metered: MeteredLog;
  readonly #pipeline: OutputPipeline;
  readonly #context: SupervisorContext;
  #size: TerminalSize;
  #syncTimer: NodeJS.Timeout | undefined;
  #exited = false;
  #reason: ExitReason | undefined;
  #closed = false;

  /** Forks. Owns `log` from here on. @throws QUOTA_TERMINALS when the host has no process or PTY left */
  constructor(
    context: SupervisorContext,
    { owner, instance: ordinal }: Pick<TerminalRecord, 'owner' | 'instance'>,
    launch: Launch,
    log: EventLog,
    hooks: InstanceHooks,
  ) {
    this.#context = context;
    this.#log = log;
    this.#metered = new MeteredLog(log, owner, context.logQuota);
    this.#size = launch.spec.size;
    this.#pipeline = new OutputPipeline({
      log: this.#metered,
      instance: ordinal,
      size: launch.spec.size,
      durable: () => this.#durable(),
      publish: hooks.publish,
      pause: (paused) => (paused ? this.#pty.pauseOutput() : this.#pty.resumeOutput()),
      unwritable: hooks.unwritable,
      nowMicros: () => context.now() * 1000,
    });
    this.#pty = openPty(launch.spec, (chunk) => this.#pipeline.push(chunk));
    const { pid, startTime, ttyDevice } = this.#pty;
    const isClosed = () => this.#closed;
    this.marks = {
      pid,
      startTime,
      sessionId: pid,
      nonce: launch.nonce,
      cgroup: launch.cgroup,
      isOurs: true,
      // Asked anew at each scan: a stop may wait for survivors while another terminal gets the number.
      get ttyDevice() {
        return isClosed() ? 0 : ttyDevice;
      },
    };
    this.exit = this.#pty.exit.then((exit) => this.#record(exit));
  }

  /**
   * Resolves when the child has made the terminal its own, within a millisecond or so of the fork:
   * before that it has no foreground group that could be signalled. One that is not seen on it, as
   * it left it first or nothing can be seen, is taken as it is.
   */
  async onTerminal(): Promise<void> {
    const end = performance.now() + ON_TERMINAL_MS;
    while (!this.#exited && !this.#isOnTerminal() && performance.now() < end) await delay(1);
  }

  #isOnTerminal(): boolean {
    try {
      return readProcess(this.marks.pid)?.ttyDevice === this.marks.ttyDevice;
    } catch {
      return false;
    }
  }

  get firstSeq(): number {
    return this.#log.firstSeq;
  }

  get nextSeq(): number {
    return this.#log.nextSeq;
  }

  /** Seq up to which output had been read by now. */
  get lastSeq(): number {
    return this.#pipeline.lastSeq;
  }

  /** The same, and what is read from now on comes after it. */
  cutOutput(): number {
    return this.#pipeline.cut();
  }

  /** @throws as `mayWrite` gives, INPUT_QUEUE_FULL, TERMINAL_EXITED */
  send(
    data: Uint8Array,
    mayWrite: () => GranttyError | undefined,
    onTaken: (bytes: number) => void,
  ): Promise<void> {
    return this.#pty.send(data, mayWrite, onTaken);
  }

  /** Removes parts of the log that were complete before that time; resolves with their bytes. */
  trimLog(before: number): Promise<number> {
    return this.#metered.removeOlder(before);
  }

  /** What the exit says, unless it has come before: the first reason stands. */
  endedFor(reason: ExitReason): void {
    if (!this.#exited) this.#reason ??= reason;
  }

  /** Rejects queued input whose authority is gone. */
  dropRefused(): void {
    this.#pty.dropRefused();
  }

  /** True when the size changed. */
  resize(size: TerminalSize): boolean {
    this.#checkRuns();
    if (size.cols === this.#size.cols && size.rows === this.#size.rows) return false;
    this.#pty.resize(size);
    this.#size = size;
    this.#pipeline.resized(size);
    return true;
  }

  async signal(name: SignalName, check: () => void): Promise<SignalResult> {
    this.#checkRuns();
    const processGroup = await signalForeground(this.marks, name, check);
    if (processGroup === undefined) throw terminalExited();
    return { processGroup };
  }

  foreground(): Promise<ForegroundState> {
    return foregroundState(this.marks);
  }

  /** Hangs up the terminal and closes the log; after `exit`, or to give it up. */
  async close(): Promise<void> {
    clearTimeout(this.#syncTimer);
    this.#pipeline.stop();
    this.#closed = true;
    this.#pty.close();
    await this.marks.cgroup?.remove();
    await this.#log.close();
  }

  async #record(exit: PtyExit): Promise<ExitEvent | undefined> {
    this.#exited = true;
    const survivors = await this.#countSurvivors();
    const status: ExitStatus = {
      exitCode: exit.exitCode,
      ...(exit.signal !== undefined && { signal: exit.signal }),
      ...(this.#reason && { reason: this.#reason }),
      ...(survivors > 0 && { survivors }),
    };
    return this.#pipeline.finish(status);
  }

  /** 0 too when it cannot be known, such as without a descriptor left: the exit goes on record. */
  async #countSurvivors(): Promise<number> {
    try {
      // A control group may have been given an older process too.
      const birth = this.marks.cgroup ? undefined : this.#pty.birth;
      return (await findTree(this.marks, birth)).length;
    } catch (error) {
      const { pid } = this.marks;
      this.#context.log.error(
        { process: pid, err: error },
        'what survives the process cannot be found out',
      );
      return 0;
    }
  }

  async #durable(): Promise<void> {
    const { logSync, log } = this.#context;
    if (logSync === 'batch') return this.#log.sync();
    if (logSync === 'off') return;
    this.#syncTimer ??= setTimeout(() => {
      this.#syncTimer = undefined;
      this.#log.sync().catch((error: unknown) => log.error({ err: error }, 'log not synced'));
    }, SYNC_INTERVAL_MS);
  }

  #checkRuns(): void {
    if (this.#exited) throw terminalExited();
  }
}

export function stillRunning(): GranttyError {
  return new GranttyError(
    'TERMINAL_EXISTS',
    'the terminal is still running; stop or kill it first',
  );
}

export function terminalExited(): GranttyError {
  return new GranttyError(
    'TERMINAL_EXITED',
    'the process of this terminal has exited; start the terminal again first',
  );
}
