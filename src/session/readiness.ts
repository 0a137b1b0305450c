/** When a program is ready for the next send: evidence in four tiers, from sure to assumed. */
import type { ForegroundState } from '../supervisor/api.js';
import type { Clock } from './clock.js';
import type { MarkKind } from './promptMarks.js';
import type { TerminalWaitReason } from './sessionTypes.js';

/** Milliseconds between two looks. */
export const POLL_MS = 50;
/** Milliseconds after the input before a program that waits for more is believed to have read it. */
export const PROBE_AFTER_MS = 150;
/** Milliseconds of silence, since the input and since the last output, that pass for readiness. */
export const IDLE_MS = 3_000;
/** Milliseconds without output that the probe's answer needs: what was printed has arrived by then. */
const QUIET_MS = 10;
export const DEFAULT_TIMEOUT_MS = 30_000;
export const MAX_TIMEOUT_MS = 10 * 60_000;

export interface ReadinessOptions {
  readonly clock: Clock;
  readonly probe: () => Promise<ForegroundState>;
  readonly timeoutMs: number;
  /** The input may have held several commands: a prompt between them is no sign. */
  readonly severalLines: boolean;
  /** There was no input: the first prompt is the one to wait for. */
  readonly firstPrompt?: boolean;
}

/**
 * One wait. In this order: a mark of the shell's prompt while the shell is in the foreground; the
 * exact probe; silence; the deadline. What was seen before `begin` does not count, nor does a
 * prompt that belongs to an earlier command: it counts at once only if a command of ours began
 * before it, and else is left to the probe.
 */
export class Readiness {
  /** Undefined while input or a signal is on its way: then nothing is evidence. */
  #since: number | undefined;
  #commandBegan: boolean;
  #promptShown = false;
  #outputAt: number;
  #exited = false;
  #settled: TerminalWaitReason | undefined;
  #looking = false;
  #lookAgain = false;
  #cancelTimer = () => {};
  #resolve: (reason: TerminalWaitReason) => void = () => {};
  readonly #deadline: number;
  /** Resolves once, whatever happens. */
  readonly reason: Promise<TerminalWaitReason>;

  constructor(private readonly options: ReadinessOptions) {
    const { clock, timeoutMs, firstPrompt = false } = options;
    this.#commandBegan = firstPrompt;
    this.#outputAt = clock.now();
    this.#deadline = clock.now() + timeoutMs;
    this.reason = new Promise((resolve) => {
      this.#resolve = resolve;
    });
    this.#schedule();
  }

  /** Nothing changes the reason any more. */
  get settled(): boolean {
    return this.#settled !== undefined;
  }

  /** From now on the input has been taken. */
  begin(): void {
    this.#since = this.options.clock.now();
    if (this.#promptShown) void this.#look();
  }

  /** Evidence stops counting until the next `begin`: a signal is on its way. */
  hold(): void {
    this.#since = undefined;
  }

  sawOutput(): void {
    this.#outputAt = this.options.clock.now();
  }

  /** A mark printed after the input. */
  sawMark(kind: MarkKind): void {
    if (kind === 'C') {
      this.#commandBegan = true;
      this.#promptShown = false;
    } else {
      this.#promptShown = true;
      void this.#look();
    }
  }

  sawExit(): void {
    this.#exited = true;
    this.#settle('session_exit');
  }

  /** Nobody waits any more. */
  abandon(): void {
    this.#settle('timeout');
  }

  #schedule(): void {
    const { clock } = this.options;
    const wait = Math.min(POLL_MS, Math.max(0, this.#deadline - clock.now()));
    this.#cancelTimer = clock.after(wait, () => {
      void this.#look();
      if (this.#settled === undefined) this.#schedule();
    });
  }

  async #look(): Promise<void> {
    const { clock } = this.options;
    if (this.#settled !== undefined) return;
    if (clock.now() >= this.#deadline) return this.#settle('timeout');
    if (this.#looking) this.#lookAgain = true;
    if (this.#since === undefined || this.#looking) return;
    this.#looking = true;
    this.#lookAgain = false;
    const since = this.#since;
    const reason = await this.#evidence(since);
    this.#looking = false;
    // What was found before a signal was on its way does not count.
    if (reason && this.#since === since) this.#settle(reason);
    else if (this.#lookAgain) void this.#look();
  }

  async #evidence(since: number): Promise<TerminalWaitReason | undefined> {
    const { clock } = this.options;
    const probeDue = clock.now() - since >= PROBE_AFTER_MS;
    const prompted = this.#promptShown && this.#commandBegan;
    if (prompted || probeDue) {
      const state = await this.#probe();
      const atPrompt = prompted && this.#promptShown && state.shellInForeground;
      if (atPrompt && !(this.options.severalLines && state.waitingForInput !== 'yes')) {
        return 'stdin_read';
      }
      const quiet = clock.now() - this.#outputAt >= QUIET_MS;
      if (probeDue && quiet && state.waitingForInput === 'yes') return 'stdin_read';
    }
    const silence = clock.now() - Math.max(since, this.#outputAt);
    return silence >= IDLE_MS ? 'inferred_idle' : undefined;
  }

  /** Says nothing where it fails: the other tiers are there for that. */
  async #probe(): Promise<ForegroundState> {
    try {
      return await this.options.probe();
    } catch {
      return { shellInForeground: false, waitingForInput: 'unknown' };
    }
  }

  #settle(reason: TerminalWaitReason): void {
    if (this.#settled !== undefined) return;
    this.#settled = this.#exited ? 'session_exit' : reason;
    this.#cancelTimer();
    this.#resolve(this.#settled);
  }
}
