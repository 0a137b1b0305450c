/** A trail is as it was written, or it is seen that it is not, and where. */

import { createPublicKey } from 'node:crypto';
import { copyFile, mkdtemp, readdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { lineAfter } from '../../src/audit/chain.js';
import type { Verdict } from '../../src/audit/chainCheck.js';
import { isSigned } from '../../src/audit/checkpoint.js';
import { readKeptHead } from '../../src/audit/keptHead.js';
import { readLines } from '../../src/audit/lines.js';
import type { TrailLine } from '../../src/audit/reading.js';
import { verifyLines, verifyTrail } from '../../src/audit/verify.js';
import { intentOf, NOON, testTrail } from './trails.js';

const RUNS = 1_000;
const DAY_MS = 86_400_000;
const DAYS = ['2025-01-01.jsonl', '2025-01-02.jsonl'] as const;

/** Files of a sealed trail of two days, as they are. */
let original: ReadonlyMap<string, Buffer>;
/** HEAD as it was after the first day. */
let earlierHead: string;
let dir: string;

beforeAll(async () => {
  await using made = await testTrail();
  const trail = await made.open();
  await trail.intent(intentOf());
  await trail.intent(intentOf({ action: 'terminal.kill' }));
  made.clock.advance(DAY_MS);
  for (let count = 0; count < 4; count += 1) await trail.intent(intentOf());
  await trail[Symbol.asyncDispose]();
  const heads = made.logged.flatMap(({ fields }) => (fields.head ? [String(fields.head)] : []));
  earlierHead = heads.filter((head) => JSON.parse(head).file === DAYS[0]).at(-1) ?? '';
  const files = new Map<string, Buffer>();
  for (const name of await readdir(made.dir)) {
    if (name !== 'reserve') files.set(name, await readFile(join(made.dir, name)));
  }
  original = files;
  dir = await mkdtemp(join(tmpdir(), 'grantty-verify-'));
  await restore();
});

afterAll(() => rm(dir, { recursive: true, force: true }));

async function restore(): Promise<void> {
  for (const name of await readdir(dir)) await unlink(join(dir, name));
  for (const [name, bytes] of original) await writeFile(join(dir, name), bytes);
}

function linesOf(name: string): string[] {
  return (original.get(name) ?? Buffer.alloc(0)).toString().split(/(?<=\n)/);
}

/** As `verifyTrail` on the original with some of its files as they are given here. */
function verify(changed: Readonly<Record<string, Buffer>>): Promise<Verdict> {
  const of = (name: string) => changed[name] ?? original.get(name) ?? Buffer.alloc(0);
  return verifyLines(linesIn(of), {
    publicKey: createPublicKey(of('checkpoint.pub')),
    head: of('HEAD').toString(),
    headName: 'HEAD',
  });
}

async function* linesIn(of: (name: string) => Buffer): AsyncGenerator<TrailLine> {
  for (const file of DAYS) {
    const readAt = async (into: Buffer, offset: number, length: number, position: number) => ({
      bytesRead: of(file).copy(into, offset, position, position + length),
    });
    let line = 0;
    for await (const { bytes, complete } of readLines(readAt)) {
      line += 1;
      yield { file, line, bytes, complete };
    }
  }
}

const put = (name: string, data: string | Uint8Array) => writeFile(join(dir, name), data);
const putLines = (name: string, lines: readonly string[]) => put(name, lines.join(''));
const seqOf = (line: string): number => JSON.parse(line).seq;

describe('verify', () => {
  it('finds the trail sound, signed through its last record', async () => {
    await restore();
    const total = linesOf(DAYS[0]).length + linesOf(DAYS[1]).length;
    expect(await verifyTrail(dir)).toMatchObject({
      state: 'sound',
      notes: [],
      records: total,
      firstSeq: 1,
      lastSeq: total,
      signedThrough: total,
    });
  });

  it('names the very record of any byte that is changed', async () => {
    const change = fc.record({
      name: fc.constantFrom(...DAYS),
      at: fc.nat(),
      flip: fc.integer({ min: 1, max: 255 }),
    });
    await fc.assert(
      fc.asyncProperty(change, async ({ name, at, flip }) => {
        const bytes = Buffer.from(original.get(name) ?? []);
        const index = at % bytes.length;
        const line = bytes.subarray(0, index).toString('latin1').split('\n').length;
        bytes[index] = (bytes[index] ?? 0) ^ flip;
        const { state, firstBad } = await verify({ [name]: bytes });
        expect({ state, file: firstBad?.file, line: firstBad?.line }).toEqual({
          state: 'tampered',
          file: name,
          line,
        });
      }),
      { numRuns: RUNS, examples: [[numberOf5thRecord()]] },
    );
  });

  /** A record whose number becomes that of the one before it. */
  function numberOf5thRecord() {
    const name = DAYS[0];
    const at = (original.get(name) ?? Buffer.alloc(0)).indexOf('{"seq":5,') + '{"seq":'.length;
    return { name, at, flip: 1 };
  }

  it('notices any line that is deleted, doubled, swapped or made up', async () => {
    const edit = fc.record({
      name: fc.constantFrom(...DAYS),
      kind: fc.constantFrom('delete', 'double', 'swap', 'insert'),
      a: fc.nat(),
      b: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(edit, async ({ name, kind, a, b }) => {
        const lines = linesOf(name);
        const from = a % lines.length;
        const to = b % lines.length;
        const line = lines[from] ?? '';
        if (kind === 'delete') lines.splice(from, 1);
        if (kind === 'double') lines.splice(to, 0, line);
        if (kind === 'swap') {
          fc.pre(from !== to);
          lines[from] = lines[to] ?? '';
          lines[to] = line;
        }
        if (kind === 'insert') lines.splice(from, 0, forgedBefore(line));
        const verdict = await verify({ [name]: Buffer.from(lines.join('')) });
        expect(verdict.state).toBe('tampered');
      }),
      { numRuns: RUNS },
    );
  });

  it('notices any cut at the end by the checkpoint', async () => {
    const last = DAYS[1];
    const whole = original.get(last) ?? Buffer.alloc(0);
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), async (length) => {
        const verdict = await verify({ [last]: whole.subarray(0, length) });
        expect(verdict.state).toBe('tampered');
        expect(verdict.firstBad?.why).toContain('missing: HEAD vouches for records through');
      }),
      { numRuns: RUNS },
    );
  });

  it('notices any byte of HEAD that is changed', async () => {
    const head = original.get('HEAD') ?? Buffer.alloc(0);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(head.length - 1),
        fc.integer({ min: 1, max: 255 }),
        async (at, flip) => {
          const bytes = Buffer.from(head);
          bytes[at] = (bytes[at] ?? 0) ^ flip;
          expect((await verify({ HEAD: bytes })).state).toBe('tampered');
        },
      ),
      { numRuns: RUNS },
    );
  });
});

/** A record that fits in before `line`, as one would forge it. */
function forgedBefore(line: string): string {
  const { seq, prev } = JSON.parse(line);
  const body = JSON.stringify({ record: 'intent', time_ms: NOON, decision_id: 'forged' });
  return lineAfter({ seq: seq - 1, hash: prev }, body, { file: '', offset: 0 });
}

interface Tampering {
  readonly what: string;
  readonly with: 'HEAD' | 'the earlier head' | 'the last head kept elsewhere';
  tamper(): Promise<unknown>;
  readonly state: 'sound' | 'tampered' | 'incomplete';
  /** Of the first bad record, or undefined when there is none. */
  seq?(): number;
}

const middle = 4;
const first = () => linesOf(DAYS[0]);
const second = () => linesOf(DAYS[1]);

const tamperings: readonly Tampering[] = [
  {
    what: 'a record that was edited',
    with: 'HEAD',
    tamper: () =>
      putLines(
        DAYS[0],
        first().map((line, at) => (at === middle ? line.replace('alice', 'mallo') : line)),
      ),
    state: 'tampered',
    seq: () => middle + 1,
  },
  {
    what: 'two records on end that were edited',
    with: 'HEAD',
    tamper: () =>
      putLines(
        DAYS[0],
        first().map((line) => line.replace('alice', 'mallo')),
      ),
    state: 'tampered',
    seq: () => first().findIndex((line) => line.includes('alice')) + 1,
  },
  {
    what: 'a record that was deleted',
    with: 'HEAD',
    tamper: () =>
      putLines(
        DAYS[0],
        first().filter((_, at) => at !== middle),
      ),
    state: 'tampered',
    seq: () => middle + 1,
  },
  {
    what: 'two records that were swapped',
    with: 'HEAD',
    tamper: () => {
      const [a = '', b = '', c = '', d = '', ...rest] = first();
      return putLines(DAYS[0], [a, b, d, c, ...rest]);
    },
    state: 'tampered',
    seq: () => 3,
  },
  {
    what: 'a record that was made up',
    with: 'HEAD',
    tamper: () =>
      putLines(
        DAYS[0],
        first().flatMap((line, at) => (at === middle ? [forgedBefore(line), line] : [line])),
      ),
    state: 'tampered',
    seq: () => middle + 1,
  },
  {
    what: 'records that were cut off at the end',
    with: 'HEAD',
    tamper: () => putLines(DAYS[1], second().slice(0, 2)),
    state: 'tampered',
    seq: () => seqOf(second()[2] ?? ''),
  },
  {
    what: 'a last day that was removed',
    with: 'HEAD',
    tamper: () => unlink(join(dir, DAYS[1])),
    state: 'tampered',
    seq: () => first().length + 1,
  },
  {
    what: 'a last day that was removed, with HEAD set back',
    with: 'HEAD',
    tamper: async () => {
      await unlink(join(dir, DAYS[1]));
      await put('HEAD', `${earlierHead}\n`);
    },
    // What nobody outside has vouched for cannot be missed.
    state: 'sound',
  },
  {
    what: 'a last day that was removed, with HEAD set back',
    with: 'the last head kept elsewhere',
    tamper: async () => {
      await unlink(join(dir, DAYS[1]));
      await put('HEAD', `${earlierHead}\n`);
    },
    state: 'tampered',
    seq: () => first().length + 1,
  },
  {
    what: 'a first day that was removed',
    with: 'HEAD',
    tamper: () => unlink(join(dir, DAYS[0])),
    state: 'incomplete',
  },
  {
    what: 'a first line that was removed with the day before it',
    with: 'HEAD',
    tamper: async () => {
      await unlink(join(dir, DAYS[0]));
      await putLines(DAYS[1], second().slice(1));
    },
    state: 'tampered',
    seq: () => first().length + 1,
  },
  {
    what: 'a HEAD that was removed',
    with: 'HEAD',
    tamper: () => unlink(join(dir, 'HEAD')),
    state: 'incomplete',
  },
  {
    what: 'a HEAD that was removed',
    with: 'the last head kept elsewhere',
    tamper: () => unlink(join(dir, 'HEAD')),
    state: 'sound',
  },
  {
    what: 'a public key that was removed',
    with: 'HEAD',
    tamper: () => unlink(join(dir, 'checkpoint.pub')),
    state: 'incomplete',
  },
  {
    what: 'nothing',
    with: 'the earlier head',
    tamper: async () => undefined,
    state: 'sound',
  },
  {
    what: 'a record before it that was edited',
    with: 'the earlier head',
    tamper: () =>
      putLines(
        DAYS[0],
        first().map((line, at) => (at === middle ? line.replace('alice', 'mallo') : line)),
      ),
    state: 'tampered',
    seq: () => middle + 1,
  },
];

describe('a signature', () => {
  it('counts in one spelling only', () => {
    const head = (original.get('HEAD') ?? '').toString();
    const publicKey = createPublicKey(original.get('checkpoint.pub') ?? '');
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const [, last = ''] = /(.)"\}\n$/.exec(head) ?? [];
    // The last of 86 characters has four bits that no byte takes.
    const other = alphabet[alphabet.indexOf(last) ^ 1] ?? '';
    expect(isSigned(head, publicKey)).toBe(true);
    expect(isSigned(head.replace(/.("\}\n)$/, `${other}$1`), publicKey)).toBe(false);
  });
});

describe('with what is kept', () => {
  it.each(tamperings)('$with: $what', async ({ with: kept, tamper, state, seq }) => {
    await restore();
    await tamper();
    const head =
      kept === 'HEAD'
        ? undefined
        : kept === 'the earlier head'
          ? earlierHead
          : (original.get('HEAD') ?? '').toString();
    const verdict = await verifyTrail(dir, head === undefined ? {} : { head });
    expect({ state: verdict.state, seq: verdict.firstBad?.seq }).toEqual({ state, seq: seq?.() });
  });

  it('notices a trail that was written anew with another key, by the key kept elsewhere', async () => {
    await restore();
    await using other = await testTrail();
    const keyFile = join(other.dir, 'kept.pub');
    await copyFile(join(dir, 'checkpoint.pub'), keyFile);
    const trail = await other.open();
    await trail.intent(intentOf());
    await trail[Symbol.asyncDispose]();
    expect((await verifyTrail(other.dir)).state).toBe('sound');
    expect(await verifyTrail(other.dir, { keyFile })).toMatchObject({
      state: 'tampered',
      firstBad: { file: 'HEAD', why: expect.stringContaining('another key') },
    });
  });

  it('reads a kept head from the line, from a log, and from a file of either', async () => {
    await restore();
    const head = (original.get('HEAD') ?? '').toString();
    const logLine = JSON.stringify({ level: 30, head: head.trim(), msg: 'audit checkpoint' });
    await put('server.log', `${JSON.stringify({ head: earlierHead })}\nno json\n${logLine}\n`);
    const forms = [head, logLine, join(dir, 'HEAD'), join(dir, 'server.log')];
    for (const form of forms) expect(await readKeptHead(form)).toBe(head.trim());
    await expect(readKeptHead('nonsense')).rejects.toThrow('--head holds no checkpoint');
  });
});
