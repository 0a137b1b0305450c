// An answer of fixed bytes by a handler on grpc-js that does nothing: what anything built on it can do
// at most. Nothing is encoded or decoded. Its argument is the size of the answer.
import { Server, ServerCredentials } from '@grpc/grpc-js';

const answer = Buffer.alloc(Number(process.argv[2]), 1);
const bytes = (value) => value;
const getTerminal = {
  path: '/grantty.v1.TerminalService/GetTerminal',
  requestStream: false,
  responseStream: false,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
};
const server = new Server({ 'grpc.enable_channelz': 0 });
server.addService({ getTerminal }, { getTerminal: (_, respond) => respond(null, answer) });
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`127.0.0.1:${port}`);
});
