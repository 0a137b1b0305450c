import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const RECHECK = join(import.meta.dirname, 'recheck.mjs');

type Line = Record<string, unknown>;

interface Run {
  /** Lines of the terminals' logs, by id. */
  readonly logs: Record<string, Line[]>;
  readonly metas: Record<string, Line>;
  /** What one client wrote down. */
  record: Line[];
}

const output = (seq: number, text: string, instance?: number): Line => ({
  seq,
  ts: 1,
  type: 'pty.output',
  data_b64: Buffer.from(text).toString('base64'),
  ...(instance && { instance }),
});
const seen = (view: string, seq: number, text: string): Line => ({
  t: 'o',
  view,
  seq,
  len: text.length,
  hash: createHash('sha1').update(text).digest('hex'),
});

/** A small sound run: a flood that ran twice, an echo that was typed at, a counter that was signalled. */
function soundRun(): Run {
  const meta = (id: string, more: Line) => ({ id, uid: `uid-${id}`, log_epoch: 1, ...more });
  const [from, until] = ['1\n', '2\n3\n'];
  return {
    logs: {
      flood: [
        output(1, from),
        output(2, until),
        { seq: 3, ts: 1, type: 'process.exit', exit_code: 0 },
        output(4, from, 2),
        { seq: 5, ts: 1, type: 'process.exit', instance: 2, reason: 'supervisor-lost' },
      ],
      echo: [
        output(1, 'ready'),
        output(2, '[a.1:x][w.1:yy]'),
        output(3, '[a.2:z'),
        output(4, '[end.1:]'),
        { seq: 5, ts: 1, type: 'process.exit', exit_code: 137, signal: 'SIGKILL' },
      ],
      count: [
        output(1, 'ready\nusr1 1\nusr1 2\n'),
        { seq: 2, ts: 1, type: 'process.exit', exit_code: 137, signal: 'SIGKILL' },
      ],
    },
    metas: {
      flood: meta('flood', { instance: 2, state: 'error', reason: 'supervisor-lost' }),
      echo: meta('echo', { instance: 1, state: 'exited', exit_code: 137, signal: 'SIGKILL' }),
      count: meta('count', { instance: 1, state: 'exited', exit_code: 137, signal: 'SIGKILL' }),
    },
    record: [
      { t: 'create', id: 'flood', program: 'flood', args: { count: 3 } },
      { t: 'created', id: 'flood', uid: 'uid-flood' },
      { t: 'start', uid: 'uid-flood', requestId: 's1' },
      { t: 'started', uid: 'uid-flood', requestId: 's1', instance: 2 },
      { t: 'create', id: 'echo', program: 'echo', args: {} },
      { t: 'created', id: 'echo', uid: 'uid-echo' },
      { t: 'create', id: 'count', program: 'count', args: {} },
      { t: 'created', id: 'count', uid: 'uid-count' },
      { t: 'view', view: 'v', uid: 'uid-flood', way: 'followed' },
      { t: 'from', view: 'v', epoch: 1 },
      seen('v', 1, from),
      seen('v', 2, until),
      { t: 'exited', view: 'v', seq: 3, instance: 1, exitCode: 0, signal: '', reason: 1 },
      ...['a.1', 'a.2', 'w.1', 'end.1'].flatMap((name, i) => {
        const [lane, k] = name.split('.');
        const place = { uid: 'uid-echo', instance: 1, lane, k: Number(k) };
        const length = ['[a.1:x]', '[a.2:zzz]', '[w.1:yy]', '[end.1:]'][i]?.length ?? 0;
        const taken = name === 'a.2' ? 6 : length;
        return [
          { t: 'frame', ...place, len: length },
          { t: 'taken', ...place, taken },
        ];
      }),
      { t: 'settled', uid: 'uid-echo', instance: 1 },
      ...[1, 2].flatMap((n) => [
        { t: 'signal', uid: 'uid-count', instance: 1, n },
        { t: 'signalled', uid: 'uid-count', instance: 1, n },
      ]),
      { t: 'counted', uid: 'uid-count', instance: 1, n: 2 },
    ],
  };
}

describe('the checker of a torture run', () => {
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'grantty-checker-'));
  });

  afterEach(() => rm(dir, { recursive: true }));

  async function problemsOf(run: Run): Promise<string> {
    for (const name of ['records', 'archive']) await mkdir(join(dir, name));
    const lines = (list: readonly Line[]) =>
      list.map((line) => `${JSON.stringify(line)}\n`).join('');
    await writeFile(join(dir, 'records/one.jsonl'), lines(run.record));
    for (const [id, log] of Object.entries(run.logs)) {
      const place = join(dir, `state/home/0/agent/a/session/s/terminal/${id}`);
      await mkdir(place, { recursive: true });
      await writeFile(join(place, 'events.jsonl'), lines(log));
      await writeFile(join(place, 'meta.json'), JSON.stringify(run.metas[id]));
      for (const name of ['state', 'status']) {
        await writeFile(join(place, name), `${run.metas[id]?.state}\n`);
      }
    }
    const said = await new Promise<string>((resolve) => {
      execFile(process.execPath, [RECHECK, dir], (_, stdout) => resolve(stdout));
    });
    return JSON.parse(said).problems.join('\n');
  }

  it('has no complaint about a sound run', async () => {
    expect(await problemsOf(soundRun())).toBe('');
  });

  const faults: [string, (run: Run) => void, RegExp][] = [
    ['a gap in the log', ({ logs }) => logs.flood?.splice(1, 1), /seq 3 .* comes after 1/],
    [
      'a duplicate in the log',
      ({ logs }) => logs.flood?.splice(1, 0, output(1, '1\n')),
      /seq 1 .* comes after 1/,
    ],
    ['an instance without an end', ({ logs }) => logs.flood?.pop(), /instance 2 has no end/],
    [
      'two ends of one instance',
      ({ logs }) => logs.count?.push({ seq: 3, ts: 1, type: 'process.exit', exit_code: 0 }),
      /a second end of instance 1/,
    ],
    [
      'a state that is not true',
      ({ metas }) => Object.assign(metas.flood ?? {}, { state: 'running' }),
      /state running, and the last event says error/,
    ],
    [
      'a byte that the program did not print',
      ({ logs, record }) => {
        logs.flood?.splice(1, 1, output(2, '2\n4\n'));
        record.splice(11, 1, seen('v', 2, '2\n4\n'));
      },
      /are not a beginning/,
    ],
    [
      'output that ends early',
      ({ logs, record }) => {
        logs.flood?.splice(1, 1, output(2, '2\n'));
        record.splice(11, 1, seen('v', 2, '2\n'));
      },
      /4 of 6 bytes/,
    ],
    [
      'a byte that a client saw and the log lacks',
      ({ logs }) => logs.flood?.splice(1, 1, output(2, '2\n3')),
      /had 4 other bytes than the 3 in the log/,
    ],
    [
      'an event that a client was not given',
      ({ record }) => record.splice(11, 1),
      /view v .* seq 3 after 1/,
    ],
    [
      'an event that a client was given twice',
      ({ record }) => record.splice(11, 0, seen('v', 2, '2\n3\n')),
      /view v .* seq 2 after 2/,
    ],
    [
      'an end that a client was told otherwise',
      ({ record }) => Object.assign(record[12] ?? {}, { exitCode: 1 }),
      /another end than in the log/,
    ],
    [
      'input that arrived twice',
      ({ logs }) => logs.echo?.splice(1, 1, output(2, '[a.1:x][a.1:x][w.1:yy]')),
      /a.1 arrived twice/,
    ],
    [
      'input that was taken and never arrived',
      ({ logs }) => logs.echo?.splice(1, 1, output(2, '[a.1:x]')),
      /w.1 never arrived/,
    ],
    [
      'more input than was said to be taken',
      ({ logs }) => logs.echo?.splice(2, 1, output(3, '[a.2:zz')),
      /a.2: 7 bytes arrived, 6 were taken/,
    ],
    [
      'frames that were mixed',
      ({ logs }) => logs.echo?.splice(1, 1, output(2, '[a.1:[w.1:yy]x]')),
      /a.1: 5 bytes arrived, 7 were taken|nobody typed/,
    ],
    [
      'a signal that came twice',
      ({ logs }) => logs.count?.splice(0, 1, output(1, 'ready\nusr1 1\nusr1 2\nusr1 3\n')),
      /3 signals arrived of 2 sent/,
    ],
    [
      'a start that took place twice',
      ({ record }) =>
        record.splice(4, 0, { t: 'started', uid: 'uid-flood', requestId: 's1', instance: 3 }),
      /s1 started instances 2, 3/,
    ],
    [
      'a create that took place twice',
      ({ record }) => record.splice(2, 0, { t: 'created', id: 'flood', uid: 'uid-other' }),
      /one request made 2 terminals/,
    ],
  ];

  it.each(faults)('finds %s', async (_, spoil, expected) => {
    const run = soundRun();
    spoil(run);
    expect(await problemsOf(run)).toMatch(expected);
  });
});
