// Run by detached.test.ts: a detached supervisor, in the built code, of the state directory it is given.
import { openStateDir } from '../../dist/store/stateDir.js';
import { superviseDetached } from '../../dist/supervisor/detached.js';
import { endingSignals } from '../../dist/supervisor/endingSignals.js';
import { createInProcessSupervisor } from '../../dist/supervisor/inProcess.js';

const log = { info() {}, warn() {}, error: (fields, message) => console.error(message, fields) };
const stateDir = await openStateDir(process.argv[2]);
const ending = endingSignals();
await superviseDetached({
  stateDir,
  log,
  signal: ending.signal,
  whenIdle: ending.whenIdle,
  create: () =>
    createInProcessSupervisor({
      stateDir: stateDir.path,
      stateDirId: stateDir.id,
      isolation: { mode: 'shared-uid', owners: 'any' },
      version: 'test',
      log,
      hurry: ending.hurry,
      locator: ({ id }) => `test:${id}`,
    }),
  onReady: (path) => console.log(`ready ${path}`),
});
console.log('ended');
