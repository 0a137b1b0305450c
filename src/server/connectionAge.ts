/** Ends connections that have grown old: their streams are told first, calls in progress may finish. */
import { constants, type ServerHttp2Session } from 'node:http2';
import type { Clock } from './clock.js';
import { peerName } from './listener.js';

/** Of its age, what a connection may lose by chance: clients that came together do not leave together. */
const JITTER = 0.2;

/**
 * Milliseconds between the word that the connection will go and its closing to new calls: what a peer
 * began before it had heard that has arrived by then. A ping would measure the way there and back, but
 * a peer that is done with the connection may not answer it.
 */
const NOTICE_MS = 1_000;

/** Milliseconds that calls have to finish: longer than any but Wait may take (a Stop, 60 s). */
const GRACE_MS = 75_000;

/** Says "begin nothing more here" and names no stream as lost (RFC 9113, 6.8). */
const ANY_STREAM = 2 ** 31 - 1;

export interface ConnectionAgeOptions {
  readonly clock: Clock;
  /** Milliseconds that no connection gets older than, but for its grace. */
  readonly ageMs: number;
  /** Ends the streams of that peer, those that it opens in the meantime too. */
  readonly retire: (peer: string) => void;
  /** The connection is gone: its name may come again. */
  readonly forget: (peer: string) => void;
  /** Closes the peer's socket. */
  readonly cut: (peer: string) => void;
  /** From 0 up to 1. */
  readonly random?: () => number;
}

export class ConnectionAge {
  constructor(private readonly options: ConnectionAgeOptions) {}

  /** To be called when a connection speaks HTTP/2. */
  began(session: ServerHttp2Session): void {
    const { clock, ageMs, forget, random = Math.random } = this.options;
    const { socket } = session;
    if (socket === undefined || socket.remotePort === undefined) return;
    const peer = peerName(socket);
    let cancel = clock.after(ageMs * (1 - JITTER * random()), () => {
      this.#retire(session, peer);
      cancel = clock.after(NOTICE_MS, () => {
        session.close();
        cancel = clock.after(GRACE_MS, () => this.options.cut(peer));
      });
    });
    session.once('close', () => {
      cancel();
      forget(peer);
    });
  }

  #retire(session: ServerHttp2Session, peer: string): void {
    if (session.destroyed || session.closed) return;
    session.goaway(constants.NGHTTP2_NO_ERROR, ANY_STREAM);
    this.options.retire(peer);
  }
}
