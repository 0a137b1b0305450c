// Loaded into a server before its program: on SIGWINCH it collects garbage and writes what is alive, and
// which resources keep the event loop busy, to a file, which is named by the query of this module's
// address and the id of the process.
import { renameSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const file = `${new URL(import.meta.url).searchParams.get('file')}-${process.pid}`;

process.on('SIGWINCH', async () => {
  for (let turn = 0; turn < 3; turn += 1) {
    globalThis.gc();
    await setTimeout(100);
  }
  const resources = process.getActiveResourcesInfo();
  writeFileSync(`${file}.new`, JSON.stringify({ ...process.memoryUsage(), resources }));
  renameSync(`${file}.new`, file);
});
