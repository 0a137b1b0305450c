// The handler of GetTerminal without anything that decides or records: grpc-js as it comes.
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { TerminalService } from '../../dist/gen/public/grantty/v1/terminal_service_pb.js';
import { serviceDefinition } from '../../dist/server/grpc.js';
import { toTerminal } from '../../dist/server/wire.js';
import { readRecord } from '../../dist/store/metadata.js';

const record = await readRecord(process.argv[2]);
const snapshot = async () => ({ record, firstSeq: 1, nextSeq: 1, attachments: [] });
const { getTerminal } = serviceDefinition(TerminalService);
const server = new Server();
server.addService(
  { getTerminal },
  {
    getTerminal: (_call, respond) =>
      snapshot().then((terminal) => respond(null, { terminal: toTerminal(terminal, []) })),
  },
);
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`127.0.0.1:${port}`);
});
