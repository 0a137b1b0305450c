// Keys that come back by an Attach on grpc-js that does nothing else: what anything built on it can do
// at most. Nothing is decided, logged or held, and there is no terminal. Arguments: the certificate
// and its key, then `direct`, or `relay` and the path of a socket: each key takes the way through one more
// process of Node.js, over that Unix socket and back, as it does where terminals outlive the server.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Server, ServerCredentials } from '@grpc/grpc-js';

const [cert, key, way, socketPath] = process.argv.slice(2);
const bytes = (value) => value;
const method = (name, isStream) => ({
  path: `/grantty.v1.TerminalService/${name}`,
  requestStream: isStream,
  responseStream: isStream,
  requestSerialize: bytes,
  requestDeserialize: bytes,
  responseSerialize: bytes,
  responseDeserialize: bytes,
});

/** An AttachResponse with that output: two fields around the bytes, each shorter than 128. */
const output = (data) =>
  Buffer.concat([Buffer.from([0x12, 2 + data.length, 0x1a, data.length]), data]);
/** What an AttachRequest brings as input; its first message, which opens, has another field. */
const inputOf = (request) => (request[0] === 0x12 ? request.subarray(4) : undefined);

async function serve(relay) {
  const server = new Server({ 'grpc.enable_channelz': 0 });
  server.addService(
    { createTerminal: method('CreateTerminal', false), attach: method('Attach', true) },
    {
      createTerminal: (_, respond) => respond(null, Buffer.alloc(0)),
      attach: (call) => {
        relay?.removeAllListeners('data').on('data', (data) => call.write(output(data)));
        call.write(output(Buffer.from('ready\n')));
        call.on('end', () => call.end());
        call.on('data', (request) => {
          const data = inputOf(request);
          if (data === undefined) return;
          if (relay) relay.write(data);
          else call.write(output(data));
        });
      },
    },
  );
  const credentials = ServerCredentials.createSsl(null, [
    { cert_chain: readFileSync(cert), private_key: readFileSync(key) },
  ]);
  server.bindAsync('127.0.0.1:0', credentials, (error, port) => {
    if (error) throw error;
    console.log(`127.0.0.1:${port}`);
  });
}

if (way === 'echo') {
  const server = createServer((socket) => socket.on('data', (data) => socket.write(data)));
  server.listen(socketPath, () => process.send('listening'));
  process.on('disconnect', () => process.exit());
} else if (way === 'relay') {
  const child = fork(fileURLToPath(import.meta.url), [cert, key, 'echo', socketPath]);
  await once(child, 'message');
  const relay = createConnection(socketPath);
  await once(relay, 'connect');
  await serve(relay);
} else {
  await serve();
}
