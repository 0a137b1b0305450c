/** What time asks of an open stream: signs of life, a warning before authority ends, a look when it does. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { EXPIRY_WARNING_MS, HEARTBEAT_MS } from '../core/limits.js';
import type { Clock } from './clock.js';
import type { FramedMessage } from './framedMessage.js';
import type { Outlet } from './outlet.js';
import { encodeMessage } from './streamEvents.js';

export interface PulseOptions {
  readonly clock: Clock;
  readonly out: Outlet;
  /** When authority ends as things are, milliseconds since the Unix epoch. */
  readonly notAfter: () => number;
  /** What a heartbeat says; 0 on streams without sequence numbers. */
  readonly lastSeq: () => number;
  /** Called when that moment has come. Must not throw. */
  readonly onEnd: () => void;
}

export class Pulse implements Disposable {
  #lastSentMs: number;
  /** The end of authority that the client has been warned of. */
  #warnedOf: number | undefined;
  #cancel = () => {};
  #stopped = false;

  /** Begins to beat. */
  constructor(private readonly options: PulseOptions) {
    this.#lastSentMs = options.clock.now();
    this.beat();
  }

  /** Sends a message of the stream, which is a sign of life too. `sent` as that of `Outlet.write`. */
  send(message: Uint8Array | FramedMessage, sent?: () => void): void {
    this.#lastSentMs = this.options.clock.now();
    this.options.out.write(message, sent);
  }

  /** Does what is due, and sets the time of the next thing: also when `notAfter` has changed. */
  beat(): void {
    this.#cancel();
    if (this.#stopped) return;
    const { clock, out, onEnd } = this.options;
    const now = clock.now();
    const notAfter = this.options.notAfter();
    if (now >= notAfter) onEnd();
    if (this.#warnedOf !== notAfter && now >= notAfter - EXPIRY_WARNING_MS) {
      this.#warnedOf = notAfter;
      const value = { expiresAt: timestampFromMs(notAfter) };
      this.send(encodeMessage({ case: 'expiring', value }));
    }
    // A clock that was set back says nothing of how long it has been silent.
    const sinceMs = now - this.#lastSentMs;
    if (sinceMs >= HEARTBEAT_MS || sinceMs < 0) {
      const value = { lastSeq: BigInt(this.options.lastSeq()) };
      // A client that takes nothing needs no sign of life.
      if (out.pendingBytes === 0) out.write(encodeMessage({ case: 'heartbeat', value }));
      this.#lastSentMs = now;
    }
    const due = [
      this.#lastSentMs + HEARTBEAT_MS,
      this.#warnedOf === notAfter ? notAfter : notAfter - EXPIRY_WARNING_MS,
    ].filter((at) => at > now);
    // Within a heartbeat it looks again, so that a clock that was set forward is noticed.
    const wait = Math.min(HEARTBEAT_MS, ...due.map((at) => at - now));
    this.#cancel = clock.after(wait, () => this.beat());
  }

  [Symbol.dispose](): void {
    this.#stopped = true;
    this.#cancel();
  }
}
