// Run by detached.test.ts: a detached supervisor, in the built code, of the state directory it is given.
import { openStateDir } from '../../dist/store/stateDir.js';
import { endedBySignals, superviseDetached } from '../../dist/supervisor/detached.js';
import { createInProcessSupervisor } from '../../dist/supervisor/inProcess.js';

const log = { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) };
const stateDir = await openStateDir(process.argv[2]);
const ending = endedBySignals();
await superviseDetached({
  stateDir,
  log,
  signal: ending.signal,
  create: () =>
    createInProcessSupervisor({
      stateDir: stateDir.path,
      stateDirId: stateDir.id,
      isolation: { mode: 'shared-uid', owners: 'any' },
      version: 'test',
      log,
      locator: ({ id }) => `test:${id}`,
    }),
  onReady: (path) => console.log(`ready ${path}`),
});
console.log('ended');
