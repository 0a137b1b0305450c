/** What a program that imports grantty gets: the client, its errors, and the contract's types. */

export type { AttachEvent, Attachment, AttachOptions, Reconnected } from './client/attachment.js';
export { type Client, type ConnectOptions, connect } from './client/connect.js';
export { CallError, StatusError, type StatusName } from './client/failure.js';
export type { CallOptions, DuplexCall, ServiceClient } from './client/grpc.js';
export { rememberedToken } from './client/token.js';
export type { WatchEvent, WatchOptions } from './client/watch.js';
export { type ErrorReason, GranttyError } from './core/errors.js';
export * from './gen/public/grantty/v1/errors_pb.js';
export * from './gen/public/grantty/v1/grant_service_pb.js';
export * from './gen/public/grantty/v1/server_service_pb.js';
export * from './gen/public/grantty/v1/session_service_pb.js';
export * from './gen/public/grantty/v1/stream_pb.js';
export * from './gen/public/grantty/v1/terminal_pb.js';
export * from './gen/public/grantty/v1/terminal_service_pb.js';
