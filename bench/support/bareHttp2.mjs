// An answer of fixed bytes in the form of gRPC by node:http2 alone: what the platform can do at most.
import { createServer } from 'node:http2';

const size = Number(process.argv[2]);
const answer = Buffer.alloc(5 + size, 1);
answer.writeUInt8(0, 0);
answer.writeUInt32BE(size, 1);
const server = createServer();
server.on('stream', (stream) => {
  stream.resume();
  stream.once('end', () => {
    stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(answer);
  });
  stream.on('error', () => {});
});
server.listen(0, '127.0.0.1', () => console.log(`127.0.0.1:${server.address().port}`));
