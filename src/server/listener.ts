/** The port: accepts connections, bounds them, hands them to grpc-js, ends them. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server as NetServer, type Socket } from 'node:net';
import type { ConnectionInjector } from '@grpc/grpc-js';

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  /** Connections at one time; what comes above is closed at once. */
  readonly maxConnections: number;
  /** Milliseconds that a connection has for its first call, TLS handshake included. */
  readonly firstCallMs: number;
}

export class Listener {
  readonly #server: NetServer;
  /** By the peer's address and port. */
  readonly #sockets = new Map<string, Socket>();
  /** Connections that have made no call yet, by the peer's address and port. */
  readonly #callless = new Map<string, NodeJS.Timeout>();

  private constructor(injector: ConnectionInjector, options: ListenerOptions) {
    this.#server = createServer({ noDelay: true, keepAlive: true }, (socket) => {
      this.#accept(socket, options);
      injector.injectConnection(socket);
    });
    this.#server.maxConnections = options.maxConnections;
  }

  /** Resolves when the port is open. */
  static async open(injector: ConnectionInjector, options: ListenerOptions): Promise<Listener> {
    const listener = new Listener(injector, options);
    const { host, port } = options;
    listener.#server.listen({ host, port });
    await once(listener.#server, 'listening');
    return listener;
  }

  get address(): AddressInfo {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new TypeError('not a TCP port');
    return address;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  /** The connection from this peer has made a call. */
  called(peer: string): void {
    clearTimeout(this.#callless.get(peer));
    this.#callless.delete(peer);
  }

  /** Closes the connection from this peer. */
  cut(peer: string): void {
    this.#sockets.get(peer)?.destroy();
  }

  /** Accepts no more. Resolves when the last connection has gone, at the latest after `graceMs`. */
  async close(graceMs: number): Promise<void> {
    if (this.#server.listening) this.#server.close();
    const force = setTimeout(() => {
      for (const socket of this.#sockets.values()) socket.destroy();
    }, graceMs);
    await Promise.all([...this.#sockets.values()].map(closed));
    clearTimeout(force);
  }

  #accept(socket: Socket, { firstCallMs }: ListenerOptions): void {
    const peer = peerName(socket);
    this.#sockets.set(peer, socket);
    const timer = setTimeout(() => socket.destroy(), firstCallMs);
    timer.unref();
    this.#callless.set(peer, timer);
    socket.on('close', () => {
      if (this.#sockets.get(peer) !== socket) return;
      this.#sockets.delete(peer);
      this.called(peer);
    });
    // A reset before anybody else listens must not end the server; `close` follows.
    socket.on('error', () => {});
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

export function peerName({
  remoteAddress,
  remotePort,
}: Pick<Socket, 'remoteAddress' | 'remotePort'>): string {
  return `${remoteAddress}:${remotePort}`;
}
