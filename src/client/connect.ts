/** A connection to a grantty server, and what can be called on it. */

import { setMaxListeners } from 'node:events';
import { isIP } from 'node:net';
import { checkServerIdentity } from 'node:tls';
import { ChannelCredentials, Client as GrpcClient } from '@grpc/grpc-js';
import { GrantService } from '../gen/public/grantty/v1/grant_service_pb.js';
import { ServerService } from '../gen/public/grantty/v1/server_service_pb.js';
import { SessionService } from '../gen/public/grantty/v1/session_service_pb.js';
import { TerminalService } from '../gen/public/grantty/v1/terminal_service_pb.js';
import { attach } from './attach.js';
import type { Attachment, AttachOpenInit, AttachOptions } from './attachment.js';
import { StatusError } from './failure.js';
import { type ServiceClient, serviceClient } from './grpc.js';
import type { ResumeOptions } from './resuming.js';
import { type SendEvent, type SendRequestInit, send } from './send.js';
import { type WatchEvent, type WatchOptions, type WatchRequestInit, watch } from './watch.js';
import {
  type TerminalsEvent,
  type WatchTerminalsRequestInit,
  watchTerminals,
} from './watchTerminals.js';

export interface ConnectOptions {
  /** `host:port`, `[ipv6]:port`. */
  readonly address: string;
  /** PEM of the authorities that may have signed the server's certificate. Absent: the system's. */
  readonly ca?: string | Uint8Array;
  /** Asked before each call and each attempt of a stream; see `rememberedToken`. */
  readonly token: () => Promise<string>;
  /** PEM of a client certificate and its key, both or neither. */
  readonly cert?: string | Uint8Array;
  readonly key?: string | Uint8Array;
  /** Name that the server's certificate must have. Absent: the host of `address`. */
  readonly serverName?: string;
}

/** Disposing is closing. */
export interface Client extends Disposable {
  readonly terminals: ServiceClient<typeof TerminalService>;
  readonly sessions: ServiceClient<typeof SessionService>;
  readonly grants: ServiceClient<typeof GrantService>;
  readonly server: ServiceClient<typeof ServerService>;
  /** TerminalService.Watch that survives lost connections and renewed tokens. */
  watch(request: WatchRequestInit, options?: WatchOptions): AsyncIterable<WatchEvent>;
  /** TerminalService.WatchTerminals that survives lost connections and renewed tokens. */
  watchTerminals(
    request?: WatchTerminalsRequestInit,
    options?: ResumeOptions,
  ): AsyncIterable<TerminalsEvent>;
  /** SessionService.Send that survives lost connections and renewed tokens. */
  send(request: SendRequestInit, options?: ResumeOptions): AsyncIterable<SendEvent>;
  /** TerminalService.Attach that survives lost connections and renewed tokens. */
  attach(open: AttachOpenInit, options?: AttachOptions): Promise<Attachment>;
  /**
   * Closes the connection for good. Watches and attachments end as if they had been left; single
   * calls fail with CANCELLED, those in progress and those that come later.
   */
  close(): void;
}

/** Bytes in flight on one connection; the default of 64 KiB halves a stream's throughput. */
const FLOW_CONTROL_WINDOW_BYTES = 4 * 1024 * 1024;
/** Milliseconds of silence after which the connection is probed, and for the answer to come. */
const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
/** Milliseconds between attempts to connect: shorter than the pauses of a stream that resumes. */
const RECONNECT_MS = 100;
const MAX_RECONNECT_MS = 2_000;

/** Connects when the first call is made; nothing fails here but unusable options. */
export function connect(options: ConnectOptions): Client {
  const client = new GrpcClient(options.address, channelCredentials(options), {
    ...identityOptions(options),
    'grpc-node.flow_control_window': FLOW_CONTROL_WINDOW_BYTES,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
    'grpc.initial_reconnect_backoff_ms': RECONNECT_MS,
    'grpc.min_reconnect_backoff_ms': RECONNECT_MS,
    'grpc.max_reconnect_backoff_ms': MAX_RECONNECT_MS,
  });
  const closing = new AbortController();
  const closed = closing.signal;
  // Every open call listens; how many there are is the caller's affair.
  setMaxListeners(0, closed);
  const channel = { client, token: options.token, closed };
  const terminals = serviceClient(channel, TerminalService);
  const sessions = serviceClient(channel, SessionService);
  const source = { terminals, sessions, token: options.token, closed };
  const close = () => {
    closing.abort(new StatusError('CANCELLED', 'the client was closed'));
    client.close();
  };
  return {
    terminals,
    sessions,
    grants: serviceClient(channel, GrantService),
    server: serviceClient(channel, ServerService),
    watch: (request, watchOptions) => watch(source, request, watchOptions),
    watchTerminals: (request, watchOptions) => watchTerminals(source, request, watchOptions),
    send: (request, sendOptions) => send(source, request, sendOptions),
    attach: (open, attachOptions) => attach(source, open, attachOptions),
    close,
    [Symbol.dispose]: close,
  };
}

function channelCredentials(options: ConnectOptions): ChannelCredentials {
  const host = hostOf(options.address);
  const named = options.serverName ?? host;
  return ChannelCredentials.createSsl(
    pem(options.ca),
    pem(options.key),
    pem(options.cert),
    isIP(named)
      ? { checkServerIdentity: (_, certificate) => checkServerIdentity(named, certificate) }
      : {},
  );
}

/**
 * TLS has no server name indication for addresses (RFC 6066, section 3), and Node.js warns of one:
 * a name that exists nowhere is indicated, and the certificate checked against the address.
 */
const NO_NAME = 'address.invalid';

function identityOptions(options: ConnectOptions): Record<string, string> {
  const named = options.serverName ?? hostOf(options.address);
  if (isIP(named)) return { 'grpc.ssl_target_name_override': NO_NAME };
  return options.serverName ? { 'grpc.ssl_target_name_override': options.serverName } : {};
}

function hostOf(address: string): string {
  return address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');
}

function pem(text: string | Uint8Array | undefined): Buffer | null {
  return text === undefined ? null : Buffer.from(text);
}
