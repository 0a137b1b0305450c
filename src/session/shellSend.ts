/** One send of a shell session: types, waits, and says why it came back. */
import { GranttyError } from '../core/errors.js';
import { MAX_INPUT_FRAME_BYTES } from '../core/limits.js';
import type { RequestMark } from '../core/terminal.js';
import type { ForegroundState } from '../supervisor/api.js';
import type { Clock } from './clock.js';
import type { LeaseSource } from './leaseSource.js';
import type { MarkKind } from './promptMarks.js';
import { DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS, Readiness } from './readiness.js';
import type { DeltaText } from './renderedDelta.js';
import { ENTER } from './sendInput.js';
import type {
  TerminalSendOperation,
  TerminalSendRead,
  TerminalSendRequest,
  TerminalSendResult,
  TerminalSessionStatus,
} from './sessionTypes.js';

/** What a send needs of its session. */
export interface SendContext {
  readonly clock: Clock;
  /** Seq of the last event of the log now; 0: none. */
  lastSeq(): Promise<number>;
  /** One frame; resolves when the line discipline has taken it. */
  type(frame: Uint8Array, leases: LeaseSource | undefined): Promise<void>;
  /** The same, but not again where the mark's text has been typed before. @returns the last seq before that */
  typeOnce(frame: Uint8Array, mark: RequestMark, leases: LeaseSource | undefined): Promise<number>;
  /** SIGINT to the foreground group. */
  interrupt(leases: LeaseSource | undefined): Promise<void>;
  probe(): Promise<ForegroundState>;
  /** Resolves with the last seq of the log when all up to it has been rendered. */
  caughtUp(): Promise<number>;
  takeDelta(): DeltaText;
  status(): TerminalSessionStatus;
}

export interface ShellSendResult extends TerminalSendResult {
  /** Seq of the last event that is rendered in it; 0: none. */
  readonly lastSeq: number;
  /** Output of this send from this seq on was left out, up to the last 4 MiB. */
  readonly skippedFromSeq?: number;
}

export class ShellSend implements TerminalSendOperation {
  readonly done: Promise<ShellSendResult>;
  /** Resolves with the last seq before the input, when the line discipline has all of it. */
  readonly started: Promise<{ readonly lastSeq: number }>;
  readonly #context: SendContext;
  readonly #readiness: Readiness;
  readonly #written: Promise<number>;
  /** Signals under way, in order, after the input. */
  #signals: Promise<void>;
  #signalling = 0;
  #writing = true;
  #settled = false;
  /** Marks up to this seq were printed before the input. */
  #inputSeq = Number.POSITIVE_INFINITY;
  #truncated = false;
  #skippedFromSeq: number | undefined;
  #fail: (error: unknown) => void = () => {};
  #wake: (() => void) | undefined;

  constructor(context: SendContext, request: TerminalSendRequest) {
    request.signal?.throwIfAborted();
    const { text, submit, leases, mark, timeoutMs = DEFAULT_TIMEOUT_MS } = request;
    const input = Buffer.from(submit ? text + ENTER : text);
    this.#context = context;
    this.#readiness = new Readiness({
      clock: context.clock,
      probe: () => context.probe(),
      timeoutMs: Math.min(timeoutMs, MAX_TIMEOUT_MS),
      severalLines: /[\r\n]/.test(text),
    });
    this.#written = this.#type(input, leases, mark);
    this.started = this.#written.then((lastSeq) => ({ lastSeq }));
    this.#signals = this.#written.then(
      () => {},
      () => {},
    );
    const cancel = () => this.cancel();
    request.signal?.addEventListener('abort', cancel, { once: true });
    const failed = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    this.#written.catch((error: unknown) => this.#inputFailed(error));
    this.done = Promise.race([this.#wait(), failed]).finally(() => {
      this.#settled = true;
      request.signal?.removeEventListener('abort', cancel);
      this.#wake?.();
    });
    this.started.catch(() => {});
  }

  /** It holds the session: it waits, or something of it may still reach the terminal. */
  get holds(): boolean {
    return !this.#settled || this.#writing || this.#signalling > 0;
  }

  readOutput(): TerminalSendRead {
    if (this.#settled) return { delta: '', truncated: false };
    const { text, truncated } = this.#takeDelta();
    return { delta: text, truncated };
  }

  /**
   * Request `SIGINT`, sent once the input is through; returns false after the operation settled.
   * @param leases - under whose authority; absent: the session's own.
   */
  cancel(leases?: LeaseSource): boolean {
    const interrupted = this.#requestInterrupt(leases);
    interrupted?.catch((error: unknown) => this.#fail(error));
    return interrupted !== undefined;
  }

  /**
   * As `cancel`, for others than the sender: resolves when the signal has been sent, with false when
   * the send had settled. A failure leaves the send as it is.
   */
  async interrupt(leases: LeaseSource): Promise<boolean> {
    const interrupted = this.#requestInterrupt(leases);
    await interrupted;
    return interrupted !== undefined;
  }

  /** Resolves when there may be more to read, or when the send has settled. */
  async changed(): Promise<void> {
    if (this.#settled) return;
    await new Promise<void>((resolve) => {
      const before = this.#wake;
      this.#wake = () => {
        before?.();
        resolve();
      };
    });
  }

  sawOutput(): void {
    this.#readiness.sawOutput();
  }

  sawMark(kind: MarkKind, seq: number): void {
    if (seq > this.#inputSeq) this.#readiness.sawMark(kind);
  }

  sawExit(): void {
    this.#readiness.sawExit();
  }

  /** More has been rendered. */
  sawRendered(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** The session lost sight of its terminal. */
  fail(error: unknown): void {
    this.#fail(error);
  }

  /** @returns the last seq before the input */
  async #type(
    input: Uint8Array,
    leases: LeaseSource | undefined,
    mark: RequestMark | undefined,
  ): Promise<number> {
    try {
      let lastSeq = await this.#context.lastSeq();
      this.#inputSeq = lastSeq;
      for (let begin = 0; begin < input.length; begin += MAX_INPUT_FRAME_BYTES) {
        const frame = input.subarray(begin, begin + MAX_INPUT_FRAME_BYTES);
        if (!mark) await this.#context.type(frame, leases);
        else {
          const part = { ...mark, key: `${mark.key}/${begin}` };
          const before = await this.#context.typeOnce(frame, part, leases);
          // Typed by an earlier process: what was printed since then is in no delta of this one.
          if (before < lastSeq) this.#truncated = true;
          lastSeq = Math.min(lastSeq, before);
        }
      }
      if (this.#signalling === 0) this.#readiness.begin();
      return lastSeq;
    } finally {
      this.#writing = false;
    }
  }

  /** After an exit the end of the output is awaited; it settles the send. */
  #inputFailed(error: unknown): void {
    if (!isExited(error)) this.#fail(error);
  }

  /** Undefined when the operation has settled. */
  #requestInterrupt(leases: LeaseSource | undefined): Promise<void> | undefined {
    if (this.#readiness.settled || this.#settled) return undefined;
    this.#readiness.hold();
    this.#signalling += 1;
    const interrupted = this.#signals.then(() => this.#interrupt(leases));
    this.#signals = interrupted.catch(() => {});
    return interrupted;
  }

  async #interrupt(leases: LeaseSource | undefined): Promise<void> {
    try {
      await this.#context.interrupt(leases);
    } catch (error) {
      if (!isExited(error)) throw error;
    } finally {
      this.#signalling -= 1;
      if (this.#signalling === 0) this.#readiness.begin();
    }
  }

  async #wait(): Promise<ShellSendResult> {
    const waitReason = await this.#readiness.reason;
    const lastSeq = await this.#context.caughtUp();
    const { text } = this.#takeDelta();
    const skippedFromSeq = this.#skippedFromSeq;
    return {
      viewport: text,
      waitReason,
      sessionStatus: this.#context.status(),
      truncated: this.#truncated,
      lastSeq,
      ...(skippedFromSeq !== undefined && { skippedFromSeq }),
    };
  }

  #takeDelta(): DeltaText {
    const delta = this.#context.takeDelta();
    this.#truncated ||= delta.truncated;
    this.#skippedFromSeq ??= delta.skippedFromSeq;
    return delta;
  }
}

function isExited(error: unknown): boolean {
  return error instanceof GranttyError && error.reason === 'TERMINAL_EXITED';
}
