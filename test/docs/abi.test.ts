/** docs/abi.md against what is written: the keys in their order, and its example lines. */
import { readFile } from 'node:fs/promises';
import { parseName } from '../../src/core/names.js';
import type { TerminalRecord } from '../../src/core/terminal.js';
import { decodeEvent, encodeEvent } from '../../src/store/eventCodec.js';
import { recordFromJson, recordToJson } from '../../src/store/recordJson.js';

const page = await readFile(new URL('../../docs/abi.md', import.meta.url), 'utf8');

/** The keys that the first column of a section's table names, in its order. */
function tableKeys(section: string): string[] {
  const [, text = ''] = page.split(new RegExp(`^## ${section}$`, 'm'));
  const rows = (text.split(/^## /m)[0] ?? '').matchAll(/^\| (`[^|]*) \|/gm);
  return [...rows].flatMap(([, cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, key = '']) => key),
  );
}

const name = (text: string) => parseName('name', text);

const full: TerminalRecord = {
  id: name('t'),
  agent: name('a'),
  session: name('s'),
  owner: name('1000'),
  cwd: '/w',
  command: ['/bin/sh'],
  state: 'exited',
  socket: 'grpc://h:1',
  createdAt: 1,
  uid: 'u',
  instance: 2,
  pid: 3,
  marks: { nonce: 'n', startTime: 4, bootId: 'b' },
  size: { cols: 80, rows: 24 },
  title: 'T',
  labels: { k: 'v' },
  backend: 'command',
  name: 'N',
  onExit: 'leave',
  createdBy: { issuer: 'i', subject: 's', grants: ['g'] },
  exit: { exitCode: 143, signal: 'SIGTERM', reason: 'r', survivors: 1 },
  exitedAt: 5,
  updatedAt: 6,
  logEpoch: 1,
  request: { key: 'k', bodyHash: 'h' },
  logRewinds: [{ epoch: 1, lastSeq: 3 }],
  startRequest: { key: 'k2', bodyHash: 'h2' },
};

describe('the page of the on-disk format', () => {
  it('names the keys of a full record, in the order in which they are written', () => {
    expect(tableKeys('meta\\.json')).toEqual(Object.keys(JSON.parse(recordToJson(full))));
  });

  it('says rightly which keys of a record are required', () => {
    const keys = tableKeys('meta\\.json');
    const required = keys
      .slice(0, keys.indexOf('created_at') + 1)
      .filter((key) => key !== 'socket');
    const all: Record<string, unknown> = JSON.parse(recordToJson(full));
    const pick = (names: readonly string[]) =>
      JSON.stringify(Object.fromEntries(names.map((key) => [key, all[key]])));
    expect(recordFromJson(pick(required))).toMatchObject({ instance: 0, logEpoch: 1 });
    for (const missing of required) {
      expect(() => recordFromJson(pick(required.filter((key) => key !== missing)))).toThrow(
        missing,
      );
    }
  });

  it('names the keys of events', () => {
    const output = { data: Buffer.of(1), size: { cols: 1, rows: 1 }, instance: 2 };
    const exit = { exitCode: 0, instance: 2, signal: 'S', reason: 'r', survivors: 1 };
    const common = { seq: 1, timeMicros: 1_000_001 };
    const keys = new Set([
      ...Object.keys(
        JSON.parse(encodeEvent({ type: 'pty.output', ...common, ...output }).toString()),
      ),
      ...Object.keys(
        JSON.parse(encodeEvent({ type: 'process.exit', ...common, ...exit }).toString()),
      ),
    ]);
    expect(new Set(tableKeys('events\\.jsonl'))).toEqual(keys);
  });

  it('shows lines that are read, and are written alike', () => {
    const lines = page.split('\n').filter((line) => line.startsWith('{"seq"'));
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      expect(encodeEvent(decodeEvent(Buffer.from(line))).toString()).toBe(`${line}\n`);
    }
  });
});
