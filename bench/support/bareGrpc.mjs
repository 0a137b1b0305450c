// The handler of GetTerminal without anything that decides or records: it asks the same supervisor and
// gives the same answer, on grpc-js as it comes. Its argument is the state directory of a server.
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { TerminalService } from '../../dist/gen/public/grantty/v1/terminal_service_pb.js';
import { serviceDefinition } from '../../dist/server/grpc.js';
import { encodeGetTerminalResponse, encodeTerminal } from '../../dist/server/terminalBytes.js';
import { openStateDir } from '../../dist/store/stateDir.js';
import { supervisorSocket } from '../../dist/supervisor/detached.js';
import { connectSupervisor } from '../../dist/supervisor/socket/socketClient.js';

const stateDir = await openStateDir(process.argv[2]);
const supervisor = await connectSupervisor({
  path: supervisorSocket(stateDir.path),
  stateDirId: stateDir.id,
  log: console,
});
const answer = async ({ request: { terminal } }) => {
  const { owner, id } = terminal;
  const found = await supervisor.get({ owner, id });
  return encodeGetTerminalResponse(encodeTerminal(found, found.attachments));
};
const { getTerminal } = serviceDefinition(TerminalService);
const server = new Server({ 'grpc.enable_channelz': 0 });
server.addService(
  { getTerminal },
  {
    getTerminal: (call, respond) =>
      answer(call).then(
        (bytes) => respond(null, bytes),
        (error) => respond(error),
      ),
  },
);
server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(`127.0.0.1:${port}`);
});
