/** The sends of one session: the active one, and those whose outcome may still be asked for. */
import { GranttyError } from '../core/errors.js';
import type { RequestMark } from '../core/terminal.js';
import type { Clock } from './clock.js';
import { type Operation, type SendOrigin, SessionSend } from './sessionSend.js';

/** Milliseconds for which a settled send and its request id are remembered, and the last one beyond. */
const KEPT_MS = 10 * 60_000;
/** Sends that are remembered; above it the oldest is forgotten early. About 300 bytes each without text. */
const MAX_KEPT = 4_096;
/** Bytes of text of settled sends; above it the oldest lose theirs, and readers are told. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

interface Entry {
  readonly send: SessionSend;
  readonly mark: RequestMark | undefined;
}

export class SessionSends {
  /** By id, oldest first. */
  readonly #entries = new Map<string, Entry>();

  constructor(private readonly clock: Clock) {}

  /** Id of the send that is active now. */
  get activeId(): string | undefined {
    for (const { send } of this.#entries.values()) if (send.active) return send.id;
    return undefined;
  }

  get(id: string): SessionSend | undefined {
    return this.#entries.get(id)?.send;
  }

  /**
   * Begins a send, or finds the one that the same request has begun. One whose text could not be
   * typed is forgotten, so that a retry tries again.
   * @throws REQUEST_ID_REUSED, and what `begin` throws
   */
  begin(mark: RequestMark | undefined, origin: SendOrigin, begin: () => Operation): SessionSend {
    const known = mark && this.#ofRequest(mark);
    if (known) return known;
    const send = new SessionSend(begin(), origin, this.clock);
    this.#forgetOld();
    this.#entries.set(send.id, { send, mark });
    send.started.catch(() => this.#entries.delete(send.id));
    return send;
  }

  #ofRequest({ key, bodyHash }: RequestMark): SessionSend | undefined {
    const since = this.clock.now() - KEPT_MS;
    for (const { send, mark } of this.#entries.values()) {
      if (mark?.key !== key || (send.settledAt ?? since) < since) continue;
      if (mark.bodyHash === bodyHash) return send;
      throw new GranttyError(
        'REQUEST_ID_REUSED',
        'this request_id was used for a different request; choose a new one',
      );
    }
    return undefined;
  }

  /** Called when another one begins. */
  #forgetOld(): void {
    const since = this.clock.now() - KEPT_MS;
    for (const [id, { send }] of this.#entries) {
      const old = send.settledAt !== undefined && send.settledAt < since;
      if (old || this.#entries.size >= MAX_KEPT) this.#entries.delete(id);
    }
    const settled = [...this.#entries.values()].filter(({ send }) => !send.active);
    let bytes = settled.reduce((sum, { send }) => sum + send.keptBytes, 0);
    for (const { send } of settled) {
      if (bytes <= MAX_KEPT_BYTES) break;
      bytes -= send.keptBytes;
      send.dropText();
    }
  }
}
