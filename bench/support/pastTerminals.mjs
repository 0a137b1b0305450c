// Terminals that have ended, put into a state directory before a server looks at it.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { EventLog } from '../../dist/store/eventLog.js';
import { makeResourceDir, writeRecord } from '../../dist/store/metadata.js';
import { OWNER } from './server.mjs';

/** What a log ends with, and nothing else in it has. */
export const NEEDLE = 'needle-2718281828 found';
export const NEEDLE_PATTERN = 'needle-[0-9]+ found';

const EVENT_BYTES = 64 * 1024;
const EVENTS_AT_ONCE = 16;

/** Resolves with the terminal's directory. */
export async function makePastTerminal(stateDir, id) {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const tuple = { owner: OWNER, agent: 'bench', session: 'default', id };
  const dir = await makeResourceDir(stateDir, tuple);
  await writeRecord(
    dir,
    {
      ...tuple,
      cwd: '/',
      command: ['/bin/true'],
      state: 'exited',
      createdAt: 1,
      uid: randomUUID(),
      instance: 1,
      size: { cols: 80, rows: 24 },
      title: '',
      labels: {},
      backend: 'command',
      name: '',
      onExit: 'leave',
      exit: { exitCode: 0 },
      exitedAt: 2000,
      updatedAt: 2000,
      logEpoch: 1,
    },
    { sync: false },
  );
  return dir;
}

/**
 * Fills a log with lines of text up to `bytes` of output, the needle at the end, and its exit; with
 * `plainFile` the same output as it is besides. Resolves with the seq of the last output.
 */
export async function fillLog(dir, bytes, plainFile) {
  const plain = plainFile && createWriteStream(plainFile);
  const log = await EventLog.open(dir);
  let seq = 1;
  let left = bytes;
  let line = 0;
  let text = '';
  const timeMicros = 1_500_000;
  while (left > 0) {
    const events = [];
    for (let i = 0; i < EVENTS_AT_ONCE && left > 0; i += 1) {
      const size = Math.min(EVENT_BYTES, left);
      const isLast = size === left;
      while (text.length < size) {
        line += 1;
        text += `${String(line).padStart(10)}  what a build prints, a test says, a server logs, all day long\r\n`;
      }
      const end = isLast ? size - NEEDLE.length : size;
      const data = Buffer.from(isLast ? text.slice(0, end) + NEEDLE : text.slice(0, end), 'latin1');
      text = text.slice(end);
      events.push({ type: 'pty.output', seq, timeMicros, data });
      seq += 1;
      left -= size;
    }
    await log.append(events);
    for (const { data } of events) if (plain && !plain.write(data)) await once(plain, 'drain');
  }
  await log.append([{ type: 'process.exit', seq, timeMicros, exitCode: 0 }]);
  await log.close();
  if (plain) {
    plain.end();
    await once(plain, 'finish');
  }
  return seq - 1;
}
