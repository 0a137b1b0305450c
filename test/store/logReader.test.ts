import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { link, mkdir, open, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import type { TerminalEvent } from '../../src/core/event.js';
import { encodeEvent, encodeEvents } from '../../src/store/eventCodec.js';
import { EventLog } from '../../src/store/eventLog.js';
import { LogReader } from '../../src/store/reader/logReader.js';
import { arbitraryLog, output, outputs, plain } from './events.js';
import { digest, eventsFile, makeAll, outputOf, readAll, scanAll } from './logFiles.js';
import { temporaryDir } from './temporaryDir.js';

async function writeLog(dir: string, events: readonly TerminalEvent[], maxBytes?: number) {
  await using log = await EventLog.open(dir, maxBytes === undefined ? {} : { maxBytes });
  for (const event of events) await log.append([event]);
}

/** A log of about 6 MiB with an index. */
const LARGE = 90;
const large = (seq: number) => output(seq, Buffer.alloc(50_000, `${seq} `));

async function writeLarge(dir: string): Promise<void> {
  await using log = await EventLog.open(dir);
  for (let seq = 1; seq <= LARGE; seq++) await log.append([large(seq)]);
}

async function expectLarge(dir: string, from: number, through: number): Promise<void> {
  const events = await readAll(dir, from, through);
  const wanted = Array.from({ length: through - from + 1 }, (_, i) => large(from + i).data);
  expect(events.map(({ seq }) => seq)).toEqual(wanted.map((_, i) => from + i));
  expect(digest(...outputOf(events))).toBe(digest(...wanted));
}

describe('a log reader', () => {
  it('gives, after any seq, the suffix, whatever the batches and the parts are', async () => {
    await fc.assert(
      fc.asyncProperty(
        arbitraryLog(1, 14, 3),
        fc.option(fc.integer({ min: 50, max: 2_000 }), { nil: undefined }),
        fc.integer({ min: 1, max: 3_000 }),
        async (events, maxBytes, batchBytes) => {
          const options = { batchBytes };
          await using dir = await temporaryDir();
          writeFileSync(join(dir.path, 'events.jsonl'), encodeEvents(events.slice(0, 1)));
          await writeLog(dir.path, events.slice(1), maxBytes);
          const last = events.length + 2;
          for (let from = 3; from <= last + 1; from++) {
            const suffix = events.slice(from - 3).map(plain);
            expect((await readAll(dir.path, from, last, options)).map(plain)).toEqual(suffix);
            expect((await scanAll(dir.path, from, last)).map(plain)).toEqual(suffix);
            expect((await makeAll(dir.path, from, last)).map(plain)).toEqual(suffix);
          }
          const middle = await readAll(dir.path, 3, last - 1, options);
          expect(middle.map(plain)).toEqual(events.slice(0, -1).map(plain));
          expect((await scanAll(dir.path, 3, last - 1)).map(plain)).toEqual(middle.map(plain));
          expect((await makeAll(dir.path, 3, last - 1)).map(plain)).toEqual(middle.map(plain));
        },
      ),
      { numRuns: 60 },
    );
  });

  it('goes on from where its last reading stopped, and back when it is asked to', async () => {
    await using dir = await temporaryDir();
    await writeLog(dir.path, outputs(1, 50), 700);
    await using reader = await LogReader.open(dir.path);
    const read = async (from: number, through: number) => {
      const seqs: number[] = [];
      for await (const batch of reader.read(from, through))
        seqs.push(...batch.map(({ seq }) => seq));
      return seqs;
    };
    expect(await read(1, 3)).toEqual([1, 2, 3]);
    expect(await read(4, 20)).toHaveLength(17);
    expect(await read(2, 4)).toEqual([2, 3, 4]);
    expect(await read(6, 6)).toEqual([6]);
    expect(await read(21, 50)).toHaveLength(30);
    expect(await read(51, 60)).toEqual([]);
    expect(await Promise.all([read(1, 50), read(20, 50), read(50, 50)])).toMatchObject([
      { length: 50 },
      { length: 31 },
      [50],
    ]);
  });

  it('passes over events of unknown types and keeps count of them', async () => {
    await using dir = await temporaryDir();
    const lines = [
      encodeEvent(output(1)),
      Buffer.from('{"seq":2,"ts":1,"type":"pty.mark","of":[1]}\n'),
      encodeEvent(output(3)),
    ];
    writeFileSync(join(dir.path, 'events.jsonl'), Buffer.concat(lines));
    expect((await readAll(dir.path)).map(({ seq }) => seq)).toEqual([1, 3]);
    expect((await readAll(dir.path, 2)).map(({ seq }) => seq)).toEqual([3]);
    expect((await scanAll(dir.path)).map(({ seq }) => seq)).toEqual([1, 3]);
    expect((await makeAll(dir.path)).map(({ seq }) => seq)).toEqual([1, 3]);
    await using reader = await LogReader.open(dir.path);
    await reader.scan(1, 2, ({ events, lastSeq }) => {
      expect([events.map(({ seq }) => seq), lastSeq]).toEqual([[1], 2]);
      return true;
    });
  });

  it('does not see a last line that is only half there, and sees it once it is whole', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'events.jsonl');
    const whole = encodeEvents(outputs(1, 2));
    const first = encodeEvents(outputs(1, 1)).length;
    for (let cut = 0; cut < whole.length; cut++) {
      writeFileSync(path, whole.subarray(0, cut));
      expect(await readAll(dir.path)).toHaveLength(cut < first ? 0 : 1);
      expect(await scanAll(dir.path)).toHaveLength(cut < first ? 0 : 1);
    }
    writeFileSync(path, whole);
    expect(await readAll(dir.path)).toHaveLength(2);
  });

  it('takes half a number at the beginning of a new part for nothing', async () => {
    await using dir = await temporaryDir();
    writeFileSync(join(dir.path, 'events.1.jsonl'), encodeEvents(outputs(1, 122)));
    for (const beginning of ['', '{"seq":1', '{"seq":12', '{"seq":123', '{"seq":123,"ts":1']) {
      writeFileSync(join(dir.path, 'events.jsonl'), beginning);
      expect((await readAll(dir.path, 12, 200)).map(({ seq }) => seq)).toEqual(
        Array.from({ length: 111 }, (_, i) => 12 + i),
      );
    }
  });

  it('says where a log is unsound, after what is sound before it', async () => {
    await using dir = await temporaryDir();
    const path = join(dir.path, 'events.jsonl');
    const sound = encodeEvents(outputs(1, 2));
    await using reader = await (async () => {
      writeFileSync(path, Buffer.concat([sound, encodeEvents([output(4)])]));
      return LogReader.open(dir.path);
    })();
    await expect(readAll(dir.path)).rejects.toThrow(`event 4 stands at byte ${sound.length}`);
    const batches = reader.read(1, 9, { batchBytes: 1 });
    expect((await batches.next()).value).toHaveLength(1);
    expect((await batches.next()).value).toHaveLength(1);
    await expect(batches.next()).rejects.toThrow('in the place of 3');
    await expect(scanAll(dir.path)).rejects.toThrow('in the place of 3');
    await expect(makeAll(dir.path)).rejects.toThrow('in the place of 3');
    writeFileSync(path, Buffer.concat([sound, Buffer.from('\0\0\n')]));
    await expect(readAll(dir.path)).rejects.toThrow(/not JSON/);
    await expect(scanAll(dir.path)).rejects.toThrow(/not JSON/);
  });

  it('ends with the reason of its signal', async () => {
    await using dir = await temporaryDir();
    await writeLog(dir.path, outputs(1, 9));
    const stop = new AbortController();
    await using reader = await LogReader.open(dir.path);
    const batches = reader.read(1, 9, { batchBytes: 1, signal: stop.signal });
    expect((await batches.next()).value).toMatchObject([{ seq: 1 }]);
    stop.abort(new Error('enough'));
    await expect(batches.next()).rejects.toThrow('enough');
    expect(openDescriptors(dir.path)).toEqual([]);
  });

  it('holds no descriptor when it is not read, broken off or not', async () => {
    await using dir = await temporaryDir();
    await writeLog(dir.path, outputs(1, 9));
    await using reader = await LogReader.open(dir.path);
    for await (const batch of reader.read(1, 9, { batchBytes: 1 })) {
      expect(batch).toHaveLength(1);
      expect(openDescriptors(dir.path)).toHaveLength(1);
      break;
    }
    expect(openDescriptors(dir.path)).toEqual([]);
    await reader.close();
    await expect(reader.read(1, 9).next()).rejects.toThrow('closed');
  });

  it('finds the seq from which the tail has so much output', async () => {
    await fc.assert(
      fc.asyncProperty(
        arbitraryLog(1, 14),
        fc.option(fc.integer({ min: 50, max: 2_000 }), { nil: undefined }),
        fc.integer({ min: 0, max: 1_500 }),
        fc.nat(),
        async (events, maxBytes, bytes, nat) => {
          await using dir = await temporaryDir();
          await writeLog(dir.path, events, maxBytes);
          const through = (nat % events.length) + 1;
          let wanted = through;
          let sum = outputOf(events.slice(through - 1, through))[0]?.length ?? 0;
          while (wanted > 1) {
            sum += outputOf(events.slice(wanted - 2, wanted - 1))[0]?.length ?? 0;
            if (sum > bytes) break;
            wanted--;
          }
          await using reader = await LogReader.open(dir.path);
          expect(await reader.seqForTail(bytes, through)).toBe(wanted);
        },
      ),
      { numRuns: 100 },
    );
  });

  it('answers for an empty log', async () => {
    await using dir = await temporaryDir();
    await writeLog(dir.path, []);
    await using reader = await LogReader.open(dir.path);
    expect(await reader.firstSeq()).toBe(1);
    expect(await reader.seqForTail(1_000, 0)).toBe(1);
    expect(await readAll(dir.path)).toEqual([]);
  });
});

describe('a scan of a log', () => {
  it('shows everything once, in passages of less than a megabyte', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    const wanted = Array.from({ length: LARGE }, (_, i) => large(i + 1).data);
    expect(digest(...outputOf(await scanAll(dir.path)))).toBe(digest(...wanted));
    expect(digest(...outputOf(await makeAll(dir.path)))).toBe(digest(...wanted));
    await using reader = await LogReader.open(dir.path);
    const sizes: number[] = [];
    await reader.scan(1, LARGE, ({ bytes }) => sizes.push(bytes.length) > 0);
    expect(sizes.length).toBeGreaterThan(5);
    expect(Math.max(...sizes)).toBeLessThan(1024 * 1024);
  });

  it('shows what another JSON writer made as what it is, beside our own lines', async () => {
    await using dir = await temporaryDir();
    const other = { type: 'pty.output', data_b64: 'b3RoZXI=', ts: 1, seq: 2 };
    const lines = [encodeEvent(output(1)), `${JSON.stringify(other)}\n`, encodeEvent(output(3))];
    writeFileSync(join(dir.path, 'events.jsonl'), lines.map(String).join(''));
    const texts = outputOf(await scanAll(dir.path)).map(String);
    expect(texts).toEqual(['line 1\r\n', 'other', 'line 3\r\n']);
  });

  it('tells what is unsound when its turn comes, and nobody who has had enough before', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    await using file = await open(join(dir.path, 'events.jsonl'), 'r+');
    const offset = encodeEvents(Array.from({ length: 50 }, (_, i) => large(i + 1))).length;
    await file.write(Buffer.from('['), 0, 1, offset);
    await using reader = await LogReader.open(dir.path);
    let last = 0;
    const scan = (enough: number) =>
      reader.scan(1, LARGE, ({ lastSeq }) => {
        last = lastSeq;
        return last < enough;
      });
    await scan(30);
    expect(last).toBeGreaterThanOrEqual(30);
    expect(last).toBeLessThan(50);
    await expect(scan(LARGE)).rejects.toThrow(SyntaxError);
    expect(last).toBeGreaterThanOrEqual(35);
    expect(last).toBeLessThanOrEqual(50);
    expect(openDescriptors(dir.path)).toHaveLength(1);
  });

  it('goes on where the last one had enough, and closes what it opened', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    await using reader = await LogReader.open(dir.path);
    const seqs: number[] = [];
    for (let rounds = 0; seqs.length < LARGE && rounds < LARGE; rounds++) {
      await reader.scan(seqs.length + 1, LARGE, ({ events }) => {
        seqs.push(...events.map(({ seq }) => seq));
        return false;
      });
      expect(openDescriptors(dir.path)).toEqual([]);
    }
    expect(seqs).toEqual(Array.from({ length: LARGE }, (_, i) => i + 1));
    const failing = reader.scan(1, LARGE, () => {
      throw new Error('of the onlooker');
    });
    await expect(failing).rejects.toThrow('of the onlooker');
    expect(openDescriptors(dir.path)).toEqual([]);
    await reader.close();
    await expect(reader.scan(1, 1, () => true)).rejects.toThrow('closed');
  });

  it('goes on beside many others, each of which sees it all', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    const before = process.memoryUsage().arrayBuffers;
    const all = Array.from({ length: 40 }, async () => {
      await using reader = await LogReader.open(dir.path);
      const found: string[] = [];
      await reader.scan(1, LARGE, ({ events }) => {
        for (const data of outputOf(events))
          found.push(Buffer.from(data.subarray(0, 4)).toString());
        expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 1024 * 1024);
        return true;
      });
      return found;
    });
    const wanted = Array.from({ length: LARGE }, (_, i) => `${i + 1} ${i + 1}`.slice(0, 4));
    for (const found of await Promise.all(all)) {
      expect(found.map((text) => text.split(' ')[0])).toEqual(
        wanted.map((text) => text.split(' ')[0]),
      );
    }
  });
});

describe('the index', () => {
  it('spares a reader what lies before: an unsound beginning is not even read', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    await using file = await open(join(dir.path, 'events.jsonl'), 'r+');
    const start = encodeEvent(large(1)).length;
    await file.write(Buffer.alloc(3_000_000), 0, 3_000_000, start);
    await expectLarge(dir.path, LARGE - 5, LARGE);
    await using reader = await LogReader.open(dir.path);
    expect(await reader.seqForTail(200_000, LARGE)).toBe(LARGE - 3);
    expect(await reader.seqForTail(1_000_000, LARGE)).toBe(LARGE - 19);
    await expect(readAll(dir.path, 2, 3)).rejects.toThrow(SyntaxError);
  });

  it('is not needed', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    rmSync(join(dir.path, 'events.idx'));
    await expectLarge(dir.path, LARGE - 2, LARGE);
    await (await EventLog.open(dir.path)).close();
    expect(readdirSync(dir.path)).toContain('events.idx');
    await expectLarge(dir.path, LARGE - 2, LARGE);
  });

  it('misleads nobody, whatever is in it', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    const path = join(dir.path, 'events.idx');
    const sound = readFileSync(path);
    const log = digest(eventsFile(dir.path));
    const seqs = fc.bigInt({ min: 1n, max: BigInt(LARGE) });
    const offsets = fc.bigInt({ min: 0n, max: BigInt(LARGE * 70_000) });
    const places = fc.array(fc.tuple(seqs, offsets), { maxLength: 10 }).map((rows) => rows.flat());
    const numbers = fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
          fc
            .oneof(numbers, places)
            .map((rows) =>
              Buffer.concat([sound.subarray(0, 16), Buffer.from(new BigUint64Array(rows).buffer)]),
            ),
          fc.integer({ min: 0, max: sound.length }).map((length) => sound.subarray(0, length)),
          fc.tuple(fc.nat(), fc.nat(255)).map(([at, byte]) => {
            const bytes = Buffer.from(sound);
            bytes[at % bytes.length] = byte;
            return bytes;
          }),
        ),
        fc.integer({ min: 1, max: LARGE }),
        async (bytes, seq) => {
          writeFileSync(path, bytes);
          expect((await readAll(dir.path, seq, seq)).map(({ seq }) => seq)).toEqual([seq]);
          const opened = await EventLog.open(dir.path);
          await opened.close();
          expect(opened).toMatchObject({ firstSeq: 1, nextSeq: LARGE + 1, repaired: undefined });
          expect((await readAll(dir.path, seq, seq)).map(({ seq }) => seq)).toEqual([seq]);
        },
      ),
      { numRuns: 60 },
    );
    expect(digest(eventsFile(dir.path))).toBe(log);
  });
});

describe('readers beside the writer', () => {
  it.each([
    { name: 'one file', options: {} },
    { name: 'many parts', options: { maxBytes: 20_000 } },
  ])('see every event once and in order, in $name', async ({ options }) => {
    await using dir = await temporaryDir();
    const last = 1_500;
    await using log = await EventLog.open(dir.path, options);
    let written = 0;
    const published = { notify: () => {}, more: Promise.resolve() };
    const renew = () => {
      published.more = new Promise((resolve) => {
        published.notify = resolve;
      });
    };
    renew();

    const write = async () => {
      while (written < last) {
        const size = Math.min(1 + ((written * 7) % 13), last - written);
        await log.append(outputs(written + 1, written + size));
        written += size;
        published.notify();
        renew();
      }
    };
    const follow = async (step: number) => {
      await using reader = await LogReader.open(dir.path);
      const seen: number[] = [];
      while (seen.length < last) {
        const through = Math.min(seen.length + step, written);
        for await (const batch of reader.read(seen.length + 1, through, { batchBytes: 900 })) {
          seen.push(...batch.map(({ seq }) => seq));
        }
        expect(seen.length).toBe(through);
        if (through === written && written < last) await published.more;
      }
      return seen;
    };
    const followBlindly = async () => {
      await using reader = await LogReader.open(dir.path);
      const seen: number[] = [];
      while (seen.length < last) {
        for await (const batch of reader.read(seen.length + 1, Number.MAX_SAFE_INTEGER)) {
          seen.push(...batch.map(({ seq }) => seq));
        }
      }
      return seen;
    };

    const followByScans = async () => {
      await using reader = await LogReader.open(dir.path);
      const seen: number[] = [];
      while (seen.length < last) {
        await reader.scan(seen.length + 1, written, ({ events }) => {
          seen.push(...events.map(({ seq }) => seq));
          return true;
        });
        if (seen.length === written && written < last) await published.more;
      }
      return seen;
    };

    const [, ...seen] = await Promise.all([
      write(),
      followByScans(),
      follow(1),
      follow(40),
      follow(last),
      followBlindly(),
      followBlindly(),
    ]);
    const all = outputs(1, last).map(({ seq }) => seq);
    for (const seqs of seen) expect(seqs).toEqual(all);
  });

  it('share a few buffers, however many they are', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    const readers = await Promise.all(Array.from({ length: 200 }, () => LogReader.open(dir.path)));
    const before = process.memoryUsage().arrayBuffers;
    let most = 0;
    await Promise.all(
      readers.map(async (reader, i) => {
        const seq = (i % LARGE) + 1;
        for await (const [event] of reader.read(seq, seq)) expect(event?.seq).toBe(seq);
        most = Math.max(most, process.memoryUsage().arrayBuffers - before);
      }),
    );
    // 200 buffers of their own would be 75 MiB; the 200 events themselves are 10.
    expect(most).toBeLessThan(40 * 1024 * 1024);
  });
});

describe('a log that is not an ordinary file of ours', () => {
  it.each(['symbolic link', 'hard link', 'FIFO', 'directory'])(
    'is refused at once: %s',
    async (kind) => {
      await using outside = await temporaryDir();
      await using dir = await temporaryDir();
      await writeLog(outside.path, outputs(1, 3));
      const target = join(outside.path, 'events.jsonl');
      const path = join(dir.path, 'events.jsonl');
      if (kind === 'symbolic link') await symlink(target, path);
      if (kind === 'hard link') await link(target, path);
      if (kind === 'FIFO') execFileSync('mkfifo', [path]);
      if (kind === 'directory') await mkdir(path);
      const before = digest(readFileSync(target));
      await expect(LogReader.open(dir.path)).rejects.toThrow();
      await expect(EventLog.open(dir.path)).rejects.toThrow();
      expect(digest(readFileSync(target))).toBe(before);
      expect(openDescriptors(dir.path)).toEqual([]);
    },
  );

  it('is refused as a sealed part or an index too', async () => {
    await using dir = await temporaryDir();
    await writeLarge(dir.path);
    rmSync(join(dir.path, 'events.idx'));
    execFileSync('mkfifo', [join(dir.path, 'events.idx')]);
    await expectLarge(dir.path, LARGE, LARGE);
    await expect(EventLog.open(dir.path)).rejects.toThrow('not a regular file');
    rmSync(join(dir.path, 'events.idx'));
    await rename(join(dir.path, 'events.jsonl'), join(dir.path, 'elsewhere'));
    await symlink('elsewhere', join(dir.path, 'events.1.jsonl'));
    await expect(LogReader.open(dir.path)).rejects.toThrow();
    await expect(EventLog.open(dir.path)).rejects.toThrow();
  });

  it('is refused where its directory is a link', async () => {
    await using dir = await temporaryDir();
    await mkdir(join(dir.path, 'real'));
    await writeLog(join(dir.path, 'real'), outputs(1, 3));
    await symlink('real', join(dir.path, 'link'));
    await expect(LogReader.open(join(dir.path, 'link'))).rejects.toThrow('not a directory');
    await expect(EventLog.open(join(dir.path, 'link'))).rejects.toThrow('not a directory');
  });

  it('is missing with ENOENT', async () => {
    await using dir = await temporaryDir();
    await expect(LogReader.open(dir.path)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('is that of no terminal when its directory is gone, in the middle of a reading too', async () => {
    await using parent = await temporaryDir();
    const [dir, gone] = [join(parent.path, 't1'), join(parent.path, '.removed')];
    await mkdir(dir);
    await writeLog(dir, outputs(1, 9), 100);
    await using reader = await LogReader.open(dir);
    const deleted = { reason: 'TERMINAL_NOT_FOUND' };
    const seqs: number[] = [];
    const reading = async () => {
      for await (const batch of reader.read(1, 9, { batchBytes: 1 })) {
        if (seqs.length === 0) await rename(dir, gone);
        seqs.push(...batch.map(({ seq }) => seq));
      }
    };
    await expect(reading()).rejects.toMatchObject(deleted);
    expect(seqs[0]).toBe(1);
    expect(seqs.length).toBeLessThan(9);
    await expect(LogReader.open(dir)).rejects.toMatchObject(deleted);
    await expect(reader.firstSeq()).rejects.toMatchObject(deleted);
    await expect(reader.seqForTail(10, 9)).rejects.toMatchObject(deleted);
    expect(openDescriptors(parent.path)).toEqual([]);
  });
});

/** What this process has open below a directory. */
function openDescriptors(dir: string): string[] {
  const script = `for f in /proc/${process.pid}/fd/*; do readlink "$f"; done; true`;
  const found = execFileSync('sh', ['-c', script], { encoding: 'utf8' });
  return found.split('\n').filter((path) => path.startsWith(`${dir}/`));
}
