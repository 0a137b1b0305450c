/** Thousands of exited terminals on disk, as a supervisor leaves them, made in seconds. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TerminalEvent } from '../../src/core/event.js';
import type { TerminalRecord } from '../../src/core/terminal.js';
import { encodeEvents } from '../../src/store/eventCodec.js';
import { EVENTS_FILE, META_FILE, resourceDir } from '../../src/store/paths.js';
import { recordToJson } from '../../src/store/recordJson.js';
import { name } from './registry.js';

const EXITED_AT = 2_000;

/** What each of them has printed. */
export const PRINTED = 'done\r\n';

/**
 * Below `stateDir`, which must exist. Not by the store's writer, which syncs each directory, but in
 * its form: record, projections, environment, log. Answers the ids in the order of a list.
 */
export function makePastTerminals(stateDir: string, owner: string, count: number): string[] {
  const ids = Array.from({ length: count }, (_, i) => `p${String(i).padStart(6, '0')}`);
  const timeMicros = EXITED_AT * 1000;
  const log: TerminalEvent[] = [
    { type: 'pty.output', seq: 1, timeMicros, data: Buffer.from(PRINTED) },
    { type: 'process.exit', seq: 2, timeMicros, exitCode: 0 },
  ];
  const events = encodeEvents(log);
  for (const [i, id] of ids.entries()) {
    const record: TerminalRecord = {
      owner: name(owner),
      agent: name('past'),
      session: name(`s${i % 10}`),
      id: name(id),
      cwd: '/',
      command: ['/bin/echo', 'done'],
      state: 'exited',
      createdAt: 1,
      uid: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`,
      instance: 1,
      size: { cols: 80, rows: 24 },
      title: '',
      labels: { number: String(i) },
      backend: 'command',
      name: '',
      onExit: 'leave',
      exit: { exitCode: 0 },
      exitedAt: EXITED_AT,
      updatedAt: EXITED_AT,
      logEpoch: 1,
    };
    const dir = resourceDir(stateDir, record);
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    const { state, cwd } = record;
    const files = {
      [META_FILE]: recordToJson(record),
      ...{ state: `${state}\n`, status: `${state}\n`, owner: `${owner}\n`, cwd: `${cwd}\n` },
      'env.json': '{}\n',
      [EVENTS_FILE]: events,
    };
    for (const [file, data] of Object.entries(files)) {
      writeFileSync(join(dir, file), data, { mode: 0o600 });
    }
  }
  return ids;
}
