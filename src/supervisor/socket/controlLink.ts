/** Keeps one control connection to the supervisor open, as long as it is wanted. */
import { setTimeout as delay } from 'node:timers/promises';
import { ControlClient } from './controlClient.js';
import { type Address, dial } from './dial.js';
import { type SocketLog, unavailable } from './protocol.js';
import { endWhenSilent } from './silence.js';

/** Milliseconds between attempts to connect: doubled from the shortest to the longest. */
const SHORTEST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 2_000;

export interface LinkOptions extends Address {
  readonly log: SocketLog;
  /** Milliseconds for which the first connection is tried; 0, the default, tries once. */
  readonly patienceMs?: number;
  /** Default: see `SILENCE_MS`. */
  readonly silenceMs?: number;
  /** Hears when the connection was lost, and when there is one again. */
  readonly onChange?: (connected: boolean) => void;
}

export class ControlLink implements AsyncDisposable {
  readonly #options: LinkOptions;
  readonly #onLost: () => void;
  readonly #stop = new AbortController();
  #client: ControlClient | undefined;
  #kept: Promise<void> = Promise.resolve();

  /** `onLost` runs before anybody is told; what belongs to the lost connection ends there. */
  static async open(options: LinkOptions, onLost: () => void): Promise<ControlLink> {
    const link = new ControlLink(options, onLost);
    const client = await link.#connect(performance.now() + (options.patienceMs ?? 0));
    link.#client = client;
    link.#kept = link.#keep(client);
    return link;
  }

  private constructor(options: LinkOptions, onLost: () => void) {
    this.#options = options;
    this.#onLost = onLost;
  }

  /** @throws SUPERVISOR_UNAVAILABLE while there is no connection */
  get client(): ControlClient {
    if (this.#client) return this.#client;
    throw unavailable(
      this.#stop.signal.aborted
        ? 'the connection to the supervisor was closed'
        : 'the supervisor is not there at present; its connection is tried again',
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#client?.close();
    this.#client = undefined;
    await this.#kept;
  }

  async #keep(first: ControlClient): Promise<void> {
    const { log, onChange } = this.#options;
    for (let client = first; ; ) {
      endWhenSilent(client, this.#options.silenceMs);
      const failure = await client.closed;
      this.#client = undefined;
      this.#onLost();
      if (this.#stop.signal.aborted) return;
      log.warn({ err: failure }, 'the connection to the supervisor was lost');
      onChange?.(false);
      try {
        client = await this.#connect(Number.POSITIVE_INFINITY);
      } catch {
        return;
      }
      this.#client = client;
      log.info({}, 'the supervisor is there again');
      onChange?.(true);
    }
  }

  /** Tries until `deadline` (performance.now) or the end. @throws the last failure */
  async #connect(deadline: number): Promise<ControlClient> {
    const { log } = this.#options;
    let told = '';
    for (let wait = SHORTEST_WAIT_MS; ; wait = Math.min(2 * wait, LONGEST_WAIT_MS)) {
      try {
        const client = await dial(
          this.#options,
          { case: 'control', value: {} },
          'control',
          (_, frames) => new ControlClient(frames),
        );
        if (!this.#stop.signal.aborted) return client;
        client.close();
      } catch (error) {
        if (this.#stop.signal.aborted || performance.now() + wait > deadline) throw error;
        if (told !== String(error)) log.info({ err: error }, 'the supervisor does not answer yet');
        told = String(error);
      }
      await delay(wait, undefined, { signal: this.#stop.signal });
    }
  }
}
