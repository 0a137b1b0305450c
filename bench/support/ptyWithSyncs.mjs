// The floor of a create and exit: node-pty with the syncs that make a terminal's life durable, in their
// order, and the stage in /bin/sh that a child begins with. One process with nothing else in it: no
// server, no authority, no socket, no log of output, no look for survivors, no text files beside the record.
import { closeSync, fdatasync, fsync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { spawn } from 'node-pty';
import { childLaunch } from '../../dist/pty/launch.js';

const [parent, count, ...command] = process.argv.slice(2);
const PARALLEL = 8;

/** As long as what a terminal writes: its record, the decision about it, its exit. */
const RECORD = 'r'.repeat(900);
const DECISION = `${'d'.repeat(900)}\n`;
const EXIT = `${'e'.repeat(80)}\n`;

const NAMES =
  'PATH HOME USER LOGNAME SHELL LANG TERM CTX_AGENT CTX_SESSION CTX_TERMINAL CTX_INSTANCE';
const env = Object.fromEntries(NAMES.split(' ').map((name) => [name, 'a value of some length']));
const launch = childLaunch({ argv: command, env }, undefined);

const wholeToDisk = promisify(fsync);
const contentToDisk = promisify(fdatasync);

/** Syncs of one file: who asks while one runs shares the next one. */
function shared(sync) {
  let running = Promise.resolve();
  let waiting;
  return () => {
    waiting ??= running.then(() => {
      waiting = undefined;
      running = sync();
      return running;
    });
    return waiting;
  };
}

async function nameToDisk(path) {
  const directory = openSync(path, 'r');
  await wholeToDisk(directory);
  closeSync(directory);
}

async function replace(dir, durable) {
  const file = openSync(join(dir, '.tmp'), 'wx');
  writeSync(file, RECORD);
  if (durable) await wholeToDisk(file);
  closeSync(file);
  renameSync(join(dir, '.tmp'), join(dir, 'meta.json'));
  if (durable) await nameToDisk(dir);
}

async function one(dir) {
  // What was decided is on record before anything is done.
  writeSync(audit, DECISION);
  await decisionsToDisk();
  mkdirSync(dir);
  await namesToDisk();
  const log = openSync(join(dir, 'events.jsonl'), 'wx');
  // The mark of the instance, for who recovers from a crash.
  await replace(dir, false);
  const [file, ...args] = launch.argv;
  const pty = spawn(file, args, { cols: 80, rows: 24, env: launch.env });
  const ended = new Promise((resolve) => pty.onExit(resolve));
  await replace(dir, true);
  await ended;
  writeSync(log, EXIT);
  await contentToDisk(log);
  await replace(dir, true);
  closeSync(log);
}

const root = await mkdtemp(join(parent, 'floor-'));
const audit = openSync(join(root, 'audit'), 'a');
const decisionsToDisk = shared(() => contentToDisk(audit));
const namesToDisk = shared(() => nameToDisk(root));
let begun = 0;
const begin = performance.now();
const worker = async () => {
  while (begun < Number(count)) {
    begun += 1;
    await one(join(root, String(begun)));
  }
};
await Promise.all(Array.from({ length: PARALLEL }, worker));
const seconds = (performance.now() - begin) / 1000;
await rm(root, { recursive: true });
console.log(JSON.stringify({ per_second: Number(count) / seconds }));
process.exit();
