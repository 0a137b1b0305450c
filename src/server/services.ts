/** The services of the contract, and what serves each of their methods. */
import type { DescService } from '@bufbuild/protobuf';
import type { Server } from '@grpc/grpc-js';
import {
  file_grantty_v1_grant_service,
  GrantService,
} from '../gen/public/grantty/v1/grant_service_pb.js';
import {
  file_grantty_v1_server_service,
  ServerService,
} from '../gen/public/grantty/v1/server_service_pb.js';
import {
  file_grantty_v1_session_service,
  SessionService,
} from '../gen/public/grantty/v1/session_service_pb.js';
import {
  file_grantty_v1_terminal_service,
  TerminalService,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import { attach } from './attach.js';
import { admit } from './authorize.js';
import type { ServerContext } from './context.js';
import { createTerminal, startTerminal } from './createTerminal.js';
import { checkAccess } from './grantCheck.js';
import { delegate } from './grantDelegate.js';
import { introspect } from './grantIntrospect.js';
import { revoke } from './grantRevoke.js';
import { type Boundary, type Handlers, serviceDefinition, serviceHandlers } from './grpc.js';
import { listTerminals } from './listTerminals.js';
import { serverDraining } from './openStreams.js';
import type { Peers } from './peer.js';
import { callerOf } from './perform.js';
import { serverInfo } from './serverInfo.js';
import { sessionCalls } from './sessionCalls.js';
import { statusOf, Unimplemented } from './status.js';
import { terminalCalls } from './terminalCalls.js';
import { wait } from './wait.js';
import { watch } from './watch.js';
import { watchTerminals } from './watchTerminals.js';

const services = [TerminalService, SessionService, GrantService, ServerService];

export const serviceNames = services.map(({ typeName }) => typeName);

/** Paths of methods whose clients send for as long as they like. */
export const openEnded: ReadonlySet<string> = new Set([
  ...services.flatMap((service) =>
    service.methods
      .filter(({ methodKind }) => methodKind === 'bidi_streaming')
      .map(({ name }) => `/${service.typeName}/${name}`),
  ),
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
]);

/** The whole server, by the empty name, and what answers nothing of use without the supervisor. */
export const supervised = [
  '',
  ...[TerminalService, SessionService, ServerService].map(({ typeName }) => typeName),
];

/** What reflection tells. */
export const files = [
  file_grantty_v1_terminal_service,
  file_grantty_v1_session_service,
  file_grantty_v1_grant_service,
  file_grantty_v1_server_service,
];

/** Adds every service of the contract; what is not built answers UNIMPLEMENTED to who has a token. */
export function addServices(server: Server, context: ServerContext, peers: Peers): void {
  const { gate, logger, streams } = context;
  const boundary: Boundary = {
    peers,
    accept: () => {
      if (streams.draining) throw serverDraining();
    },
    authenticate: (call) => admit(gate, callerOf(call)),
    status: (error, { path, peer }) => statusOf(error, logger, { path, peer: peer.address }),
    unimplemented: () => new Unimplemented(),
  };
  const add = <S extends DescService>(service: S, handlers: Handlers<S>): void => {
    server.addService(serviceDefinition(service), serviceHandlers(service, handlers, boundary));
  };
  add(TerminalService, {
    ...terminalCalls(context),
    createTerminal: createTerminal(context),
    startTerminal: startTerminal(context),
    listTerminals: listTerminals(context),
    watch: watch(context),
    attach: attach(context),
    wait: wait(context),
    watchTerminals: watchTerminals(context),
  });
  add(ServerService, serverInfo(context, serviceNames));
  add(GrantService, {
    introspect: introspect(context),
    checkAccess: checkAccess(context),
    delegate: delegate(context),
    revoke: revoke(context),
  });
  add(SessionService, sessionCalls(context));
}
