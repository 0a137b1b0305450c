/** One send as its readers see it: numbered deltas, kept for those who come later, then a result. */
import { randomUUID } from 'node:crypto';
import type { TerminalSendOperation, TerminalSendResult } from '../session/sessionTypes.js';
import type { ShellSend, ShellSendResult } from '../session/shellSend.js';
import type { Clock } from './clock.js';

/** Milliseconds for which output is gathered before it becomes a delta: short sends have none. */
const DELTA_EVERY_MS = 100;
/** Bytes of one delta; longer output comes in several. */
const MAX_DELTA_BYTES = 64 * 1024;
/** Bytes of deltas that are kept; above it the oldest go, and who had not read them is told. */
const MAX_KEPT_BYTES = 1024 * 1024;

/** What backends give; those of the shell all of it. */
export type Operation = TerminalSendOperation &
  Partial<Pick<ShellSend, 'started' | 'changed' | 'interrupt'>>;

export type SendResult = TerminalSendResult &
  Partial<Pick<ShellSendResult, 'lastSeq' | 'skippedFromSeq'>>;

export interface SendDelta {
  /** From 1. */
  readonly index: number;
  readonly text: string;
  readonly truncated: boolean;
}

export type SendStep =
  | { readonly kind: 'delta'; readonly delta: SendDelta }
  | { readonly kind: 'result'; readonly result: SendResult };

type Ending = { readonly result: SendResult } | { readonly error: unknown };

export interface SendOrigin {
  /** Last seq of the log when the send was decided: not after what `started` says. */
  readonly lastSeq: number;
  readonly logEpoch: number;
}

export class SessionSend {
  readonly id = randomUUID();
  /**
   * Last seq before the text; resolves when the line discipline has all of it, or when the send has
   * settled before. Rejects when the text could not be typed.
   */
  readonly started: Promise<number>;
  /** When it settled, by the clock; undefined while it is active. */
  settledAt: number | undefined;
  #deltas: SendDelta[] = [];
  #lastIndex = 0;
  #bytes = 0;
  #ending: Ending | undefined;
  #wake: () => void = () => {};
  #woken: Promise<void> = Promise.resolve();

  constructor(
    readonly operation: Operation,
    readonly origin: SendOrigin,
    private readonly clock: Clock,
  ) {
    this.#rearm();
    const settled = operation.done.then(
      (result) => this.#end({ result }),
      (error: unknown) => this.#end({ error }),
    );
    const typed = operation.started?.then(({ lastSeq }) => lastSeq);
    this.started = Promise.race([
      typed ?? Promise.resolve(origin.lastSeq),
      settled.then(() => origin.lastSeq),
    ]);
    this.started.catch(() => {});
    void this.#gather(settled);
  }

  get active(): boolean {
    return this.#ending === undefined;
  }

  /** Bytes of text that it keeps. */
  get keptBytes(): number {
    const { viewport = '' } = this.#result ?? {};
    return this.#bytes + Buffer.byteLength(viewport);
  }

  /**
   * What comes after the delta of this index; undefined when it has not come yet.
   * @throws why the send failed
   */
  next(afterIndex: number): SendStep | undefined {
    const delta = this.#deltas.find(({ index }) => index > afterIndex);
    if (delta !== undefined) {
      const missed = delta.index > afterIndex + 1;
      return { kind: 'delta', delta: missed ? { ...delta, truncated: true } : delta };
    }
    if (this.#ending === undefined) return undefined;
    if ('error' in this.#ending) throw this.#ending.error;
    const { result } = this.#ending;
    const missed = this.#lastIndex > afterIndex && this.#deltas.length === 0;
    return { kind: 'result', result: missed ? { ...result, truncated: true } : result };
  }

  /** Resolves when `next` may have more to say than now. */
  get changed(): Promise<void> {
    return this.#woken;
  }

  /** Forgets the text of a settled send; readers are told that it was dropped. */
  dropText(): void {
    const result = this.#result;
    if (result === undefined) return;
    this.#deltas = [];
    this.#bytes = 0;
    this.#ending = { result: { ...result, viewport: '', truncated: true } };
  }

  get #result(): SendResult | undefined {
    return this.#ending !== undefined && 'result' in this.#ending ? this.#ending.result : undefined;
  }

  /** Takes the operation's output as long as it is active. */
  async #gather(settled: Promise<void>): Promise<void> {
    while (this.active) {
      await Promise.race([this.operation.changed?.(), settled]);
      await Promise.race([this.#pause(), settled]);
      if (!this.active) return;
      const { delta, truncated } = this.operation.readOutput();
      if (delta !== '' || truncated) this.#add(delta, truncated);
    }
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.clock.after(DELTA_EVERY_MS, resolve));
  }

  #add(output: string, truncated: boolean): void {
    let dropped = truncated;
    for (const text of parts(output)) {
      this.#lastIndex += 1;
      this.#deltas.push({ index: this.#lastIndex, text, truncated: dropped });
      this.#bytes += Buffer.byteLength(text);
      dropped = false;
    }
    while (this.#bytes > MAX_KEPT_BYTES) {
      this.#bytes -= Buffer.byteLength(this.#deltas.shift()?.text ?? '');
    }
    this.#tell();
  }

  #end(ending: Ending): void {
    this.#ending = ending;
    this.settledAt = this.clock.now();
    this.#tell();
  }

  #tell(): void {
    const wake = this.#wake;
    this.#rearm();
    wake();
  }

  #rearm(): void {
    this.#woken = new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** The text in pieces of at most `MAX_DELTA_BYTES`, no character cut; one piece at least. */
function parts(text: string): string[] {
  if (Buffer.byteLength(text) <= MAX_DELTA_BYTES) return [text];
  const encoder = new TextEncoder();
  const room = new Uint8Array(MAX_DELTA_BYTES);
  const pieces: string[] = [];
  for (let at = 0; at < text.length; ) {
    const { read } = encoder.encodeInto(text.slice(at), room);
    pieces.push(text.slice(at, at + read));
    at += read;
  }
  return pieces;
}
