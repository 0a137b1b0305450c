// Loaded into a server before its program: has it speak HTTP/2 without TLS. No setting of the program
// does that; the bench needs it to tell the cost of the program from the cost of the encryption.
import { Server, ServerCredentials } from '@grpc/grpc-js';

const { createConnectionInjector } = Server.prototype;
Server.prototype.createConnectionInjector = function withoutTls() {
  return createConnectionInjector.call(this, ServerCredentials.createInsecure());
};
