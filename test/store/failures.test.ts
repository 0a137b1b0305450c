import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../../src/core/errors.js';
import { EventLog } from '../../src/store/eventLog.js';
import { writeFileAtomic } from '../../src/store/files.js';
import { compileStore, run } from './anotherProcess.js';
import { output, plain } from './events.js';
import { digest, eventsFile, outputOf, readAll, soundLines } from './logFiles.js';
import { temporaryDir } from './temporaryDir.js';

/** A file system of 1 MiB and so many files, or undefined where we may not mount one. */
async function smallDisk(
  files = 100,
): Promise<(AsyncDisposable & { readonly path: string }) | undefined> {
  const dir = await temporaryDir();
  const options = `size=1m,mode=0700,nr_inodes=${files}`;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', dir.path], { stdio: 'pipe' });
  } catch (error) {
    process.stdout.write(`skipped: no small file system can be mounted here (${String(error)})\n`);
    await dir[Symbol.asyncDispose]();
    return undefined;
  }
  return {
    path: dir.path,
    async [Symbol.asyncDispose]() {
      execFileSync('umount', [dir.path]);
      await dir[Symbol.asyncDispose]();
    },
  };
}

/** Appends until the disk is full; the seq that had no room. */
async function fill(log: EventLog, bytes: number): Promise<number> {
  for (;;) {
    const seq = log.nextSeq;
    try {
      await log.append([output(seq, Buffer.alloc(bytes, seq))]);
    } catch (error) {
      expect(errorCode(error)).toBe('ENOSPC');
      expect(log.nextSeq).toBe(seq);
      return seq;
    }
  }
}

describe('a full disk', () => {
  it.each([100, 3_000, 60_000])(
    'leaves a log of %d-byte events sound, and it goes on when there is room',
    async (bytes) => {
      await using disk = await smallDisk();
      if (!disk) return;
      const filler = join(disk.path, 'filler');
      writeFileSync(filler, Buffer.alloc(300_000));
      await using log = await EventLog.open(disk.path);
      const refused = await fill(log, bytes);
      const size = log.size;
      expect(soundLines(eventsFile(disk.path))).toMatchObject({ bytes: size });
      expect(statSync(join(disk.path, 'events.jsonl')).size).toBe(size);
      expect(await readAll(disk.path)).toHaveLength(refused - 1);
      await expect(
        log.append([output(refused, 'x'), output(refused + 1, Buffer.alloc(60_000))]),
      ).rejects.toMatchObject({ code: 'ENOSPC' });
      expect(log.size).toBe(size);

      await rm(filler);
      await log.append([output(refused, Buffer.alloc(bytes, refused))]);
      await log.sync();
      const events = await readAll(disk.path);
      const wanted = Array.from({ length: refused }, (_, i) => Buffer.alloc(bytes, i + 1));
      expect(digest(...outputOf(events))).toBe(digest(...wanted));
      expect(soundLines(eventsFile(disk.path)).bytes).toBe(log.size);
    },
  );

  it('stops no sealing for good', async () => {
    await using disk = await smallDisk();
    if (!disk) return;
    const filler = join(disk.path, 'filler');
    writeFileSync(filler, Buffer.alloc(300_000));
    await using log = await EventLog.open(disk.path, { maxBytes: 50_000 });
    const refused = await fill(log, 3_000);
    expect(await readAll(disk.path)).toHaveLength(refused - 1);
    await rm(filler);
    for (let seq = refused; seq < refused + 40; seq++) {
      await log.append([output(seq, Buffer.alloc(3_000, seq))]);
    }
    expect((await readAll(disk.path)).map(({ seq }) => seq)).toEqual(
      Array.from({ length: refused + 39 }, (_, i) => i + 1),
    );
  });

  it('that takes no further file leaves the log in one part, and it goes on when it does', async () => {
    // The root of the file system is one of the files.
    await using disk = await smallDisk(3);
    if (!disk) return;
    const filler = join(disk.path, 'filler');
    writeFileSync(filler, '');
    await using log = await EventLog.open(disk.path, { maxBytes: 1_000 });
    const refused = await fill(log, 100);
    expect(readdirSync(disk.path).sort()).toEqual(['events.jsonl', 'filler']);
    expect(await readAll(disk.path)).toHaveLength(refused - 1);
    await rm(filler);
    await log.append([output(refused, Buffer.alloc(100))]);
    expect(readdirSync(disk.path).sort()).toEqual(['events.1.jsonl', 'events.jsonl']);
    expect(await readAll(disk.path)).toHaveLength(refused);
  });

  it('keeps the old content of a file that is written whole, and no temporary file', async () => {
    await using disk = await smallDisk();
    if (!disk) return;
    const path = join(disk.path, 'meta.json');
    await writeFileAtomic(path, 'old');
    await expect(writeFileAtomic(path, Buffer.alloc(2_000_000))).rejects.toMatchObject({
      code: 'ENOSPC',
    });
    expect(readFileSync(path, 'utf8')).toBe('old');
    expect(readdirSync(disk.path)).toEqual(['meta.json']);
  });

  it('does not lose a torn tail that cannot be set aside: the log opens when there is room', async () => {
    await using disk = await smallDisk();
    if (!disk) return;
    const path = join(disk.path, 'events.jsonl');
    {
      await using log = await EventLog.open(disk.path);
      await log.append([output(1)]);
    }
    const whole = Buffer.concat([readFileSync(path), Buffer.alloc(200_000, 'x')]);
    writeFileSync(path, whole);
    const filler = join(disk.path, 'filler');
    writeFileSync(filler, Buffer.alloc(700_000));
    await expect(EventLog.open(disk.path)).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(digest(readFileSync(path))).toBe(digest(whole));
    expect(readdirSync(disk.path).sort()).toEqual(['events.jsonl', 'filler']);
    await rm(filler);
    await using log = await EventLog.open(disk.path);
    expect(log).toMatchObject({ nextSeq: 2, repaired: { bytes: 200_000 } });
  });
});

/** Writes events without end and says, in batches, which seq it has been told is written. */
const WRITER = `
  import { EventLog } from './store/eventLog.js';
  const [dir, maxBytes] = process.argv.slice(2);
  const log = await EventLog.open(dir, { maxBytes: Number(maxBytes) });
  console.log(log.nextSeq);
  for (;;) {
    const seq = log.nextSeq;
    const events = [];
    for (let i = 0; i < 1 + (seq % 7); i++) {
      const data = Buffer.alloc(1 + ((seq + i) * 7919) % 60000, (seq + i) % 251);
      events.push({ type: 'pty.output', seq: seq + i, timeMicros: seq + i, data });
    }
    await log.append(events);
    if (seq % 5 === 0) await log.sync();
    console.log(log.nextSeq - 1);
  }
`;

describe('a writer that is killed', () => {
  it.each([Number.MAX_SAFE_INTEGER, 400_000])(
    'loses nothing that it had acknowledged, and its successor goes on (parts of %d bytes)',
    async (maxBytes) => {
      await using dir = await temporaryDir();
      const js = join(dir.path, 'js');
      await compileStore(js);
      let acknowledged = 0;
      for (let round = 0; round < 6; round++) {
        await using writer = await run(js, WRITER, dir.path, String(maxBytes));
        expect(Number(await writer.nextLine())).toBeGreaterThan(acknowledged);
        for (let i = 0; i < 4 + round * 3; i++) acknowledged = Number(await writer.nextLine());
        await writer.kill('SIGKILL');
        for (;;) {
          const line = await writer.nextLine();
          if (line === undefined) break;
          acknowledged = Number(line);
        }
        const events = await readAll(dir.path, 1, acknowledged);
        expect(events.map(({ seq }) => seq)).toEqual(
          Array.from({ length: acknowledged }, (_, i) => i + 1),
        );
        expect(events.every(isWhole)).toBe(true);
      }
      await using log = await EventLog.open(dir.path);
      expect(log.nextSeq).toBeGreaterThan(acknowledged);
      expect(plain((await readAll(dir.path, log.nextSeq - 1))[0] ?? output(1))).toMatchObject({
        seq: log.nextSeq - 1,
      });
    },
  );
});

/** Whether an event is as the writer above makes it. */
function isWhole(event: { readonly seq: number; readonly data?: Uint8Array }): boolean {
  const length = 1 + ((event.seq * 7919) % 60_000);
  return event.data?.length === length && event.data.every((byte) => byte === event.seq % 251);
}
