/** What a program that imports grantty gets: the client, its errors, the contract's types, sessions. */

export { type OwnSupervisorOptions, openOwnSupervisor } from './app/ownSupervisor.js';
export { openSessions, type Sessions, type SessionsOptions } from './app/sessions.js';
export type { AttachEvent, Attachment, AttachOptions, Reconnected } from './client/attachment.js';
export { type Client, type ConnectOptions, connect } from './client/connect.js';
export { CallError, StatusError, type StatusName } from './client/failure.js';
export type { CallOptions, DuplexCall, ServiceClient } from './client/grpc.js';
export type { SendEvent } from './client/send.js';
export { rememberedToken } from './client/token.js';
export type { WatchEvent, WatchOptions } from './client/watch.js';
export type { TerminalsEvent } from './client/watchTerminals.js';
export { type ErrorReason, GranttyError } from './core/errors.js';
export { type Name, parseName } from './core/names.js';
export * from './gen/public/grantty/v1/errors_pb.js';
export * from './gen/public/grantty/v1/grant_service_pb.js';
export * from './gen/public/grantty/v1/server_service_pb.js';
export * from './gen/public/grantty/v1/session_service_pb.js';
export * from './gen/public/grantty/v1/stream_pb.js';
export * from './gen/public/grantty/v1/terminal_pb.js';
export * from './gen/public/grantty/v1/terminal_service_pb.js';
export { type Agent, AgentScope } from './session/agent.js';
export type { EventSource } from './session/eventSource.js';
export type { LeaseSource } from './session/leaseSource.js';
export { type History, LogEvents } from './session/logEvents.js';
export { Screens } from './session/screens.js';
export { ScreenWorkers } from './session/screenWorkers.js';
export { keysInput, pasteInput } from './session/sendInput.js';
export {
  TerminalBackendCleanupError,
  TerminalSessionError,
  type TerminalSessionErrorCode,
} from './session/sessionError.js';
export type * from './session/sessionTypes.js';
export { ShellBackend } from './session/shellBackend.js';
export { TerminalSessionService } from './session/terminalSessionService.js';
export type { Supervisor } from './supervisor/api.js';
