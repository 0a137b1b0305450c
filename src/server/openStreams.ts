/** The streams and waits that are open now: counted per principal, looked at again, sent away. */
import type { VerifiedToken } from '../auth/token.js';
import { counted } from '../core/counted.js';
import { GranttyError } from '../core/errors.js';
import { MAX_STREAMS_PER_PRINCIPAL } from '../core/limits.js';
import type { Call } from './call.js';

/** One stream's entry; disposing takes it off. */
export interface OpenStream extends Disposable {
  /** Aborts when the server ends the stream; its reason is the error that the client is told. */
  readonly stop: AbortSignal;
  /** Ends the stream; the first reason counts. */
  end(error: unknown): void;
  /** Called when its authority may have changed. Must not throw. */
  onRecheck: () => void;
  /** In force on it now. */
  token: VerifiedToken;
  /** The connection that it is on; see `Peer`. */
  readonly connection: string;
}

/** What is looked at of the call that a stream is. */
export type OpenCall = {
  readonly signal: Call['signal'];
  readonly peer: Pick<Call['peer'], 'connection'>;
};

export class OpenStreams {
  /** With what is called at its end. */
  readonly #open = new Map<OpenStream, () => void>();
  readonly #perPrincipal = new Map<string, number>();
  /** Connections that are to go: what opens on one of them ends at once. */
  readonly #retired = new Set<string>();
  #draining = false;

  constructor(private readonly maxPerPrincipal = MAX_STREAMS_PER_PRINCIPAL) {}

  get size(): number {
    return this.#open.size;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /**
   * Counts one more against the principal until the call is over: a client that leaves the end of
   * its stream unread holds memory for as long.
   * @throws QUOTA_STREAMS, SERVER_DRAINING
   */
  open(token: VerifiedToken, { signal: over, peer: { connection } }: OpenCall): OpenStream {
    if (this.#draining) throw serverDraining();
    const { issuer, subject } = token;
    const principal = JSON.stringify([issuer, subject]);
    const count = this.#perPrincipal.get(principal) ?? 0;
    if (count >= this.maxPerPrincipal) {
      throw new GranttyError(
        'QUOTA_STREAMS',
        `a principal may have ${counted(this.maxPerPrincipal, 'stream')} open at one time; end one of them`,
      );
    }
    this.#perPrincipal.set(principal, count + 1);
    const controller = new AbortController();
    const stream: OpenStream = {
      stop: controller.signal,
      end: (error) => controller.abort(error),
      onRecheck: () => {},
      token,
      connection,
      [Symbol.dispose]: () => {
        this.#open.get(stream)?.();
        this.#open.delete(stream);
      },
    };
    this.#open.set(stream, () => {});
    // It begins and is told to go on elsewhere, as if it had been there before.
    if (this.#retired.has(connection)) stream.end(connectionOld());
    if (over.aborted) this.#giveBack(principal);
    else over.addEventListener('abort', () => this.#giveBack(principal), { once: true });
    return stream;
  }

  #giveBack(principal: string): void {
    const left = (this.#perPrincipal.get(principal) ?? 1) - 1;
    if (left > 0) this.#perPrincipal.set(principal, left);
    else this.#perPrincipal.delete(principal);
  }

  /** Has every stream look at its authority again: after a revocation, a new policy, new keys. */
  recheck(): void {
    for (const stream of [...this.#open.keys()]) stream.onRecheck();
  }

  /** As `recheck`; tells how many streams of revoked tokens that ends, and when they have ended. */
  endRevoked(isRevoked: (token: VerifiedToken) => boolean): {
    readonly count: number;
    readonly ended: Promise<unknown>;
  } {
    const theirs = [...this.#open.keys()].filter(({ token }) => isRevoked(token));
    const ended = Promise.all(theirs.map((stream) => this.#endOf(stream)));
    this.recheck();
    return { count: theirs.length, ended };
  }

  #endOf(stream: OpenStream): Promise<void> {
    const others = this.#open.get(stream);
    return new Promise((resolve) => {
      this.#open.set(stream, () => {
        others?.();
        resolve();
      });
    });
  }

  /** Ends the connection's streams with SERVER_DRAINING, until it is forgotten those to come too. */
  retire(connection: string): void {
    this.#retired.add(connection);
    for (const stream of [...this.#open.keys()]) {
      if (stream.connection === connection) stream.end(connectionOld());
    }
  }

  forget(connection: string): void {
    this.#retired.delete(connection);
  }

  /** Ends every stream with SERVER_DRAINING; none opens any more. */
  drain(): void {
    this.#draining = true;
    for (const stream of [...this.#open.keys()]) stream.end(serverDraining());
  }
}

/** Milliseconds after which a client may look for the server again. */
const RECONNECT_AFTER_MS = 500;

export function serverDraining(): GranttyError {
  return new GranttyError('SERVER_DRAINING', 'the server is going away; reconnect and resume', {
    retryAfterMs: RECONNECT_AFTER_MS,
  });
}

/** Milliseconds: another connection can be had at once. */
const MOVE_AFTER_MS = 50;

function connectionOld(): GranttyError {
  return new GranttyError(
    'SERVER_DRAINING',
    'the connection has grown old; resume on another one',
    {
      retryAfterMs: MOVE_AFTER_MS,
    },
  );
}
