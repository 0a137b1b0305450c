// One client process of a torture run: plays the role that its argument names until SIGTERM.

import { drive } from './roles/driver.mjs';
import { endAll } from './roles/ender.mjs';
import { mirror } from './roles/mirror.mjs';
import { readAll } from './roles/reader.mjs';
import { count } from './roles/signaller.mjs';
import { type } from './roles/typist.mjs';
import { watch } from './roles/watcher.mjs';
import { openWorld } from './world.mjs';

const roles = {
  driver: drive,
  watcher: watch,
  typist: type,
  signaller: count,
  mirror,
  ender: endAll,
  reader: readAll,
};

const world = openWorld(JSON.parse(process.argv[2]));
process.on('SIGTERM', () => world.stop());
await roles[world.config.role](world);
world.close();
