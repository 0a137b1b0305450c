import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import type { TerminalEvent } from '../../src/core/event.js';
import { encodeEvents } from '../../src/store/eventCodec.js';
import { EventLog } from '../../src/store/eventLog.js';
import { arbitraryLog, exit, output, outputs, plain } from './events.js';
import { digest, eventsFile, outputOf, readAll, soundLines, tornFiles } from './logFiles.js';
import { temporaryDir } from './temporaryDir.js';

describe('an event log', () => {
  it('begins empty at seq 1, in a file of mode 0600', async () => {
    await using dir = await temporaryDir();
    await using log = await EventLog.open(dir.path);
    expect(log).toMatchObject({ firstSeq: 1, nextSeq: 1, lastTimeMicros: 0, size: 0 });
    expect(log.lastExit).toBeUndefined();
    expect(log.repaired).toBeUndefined();
    expect(statSync(join(dir.path, 'events.jsonl')).mode & 0o777).toBe(0o600);
  });

  it('begins the same in a directory that was just made, and in no other', async () => {
    await using dir = await temporaryDir();
    {
      await using log = await EventLog.begin(dir.path);
      expect(log).toMatchObject({ firstSeq: 1, nextSeq: 1, lastTimeMicros: 0, size: 0 });
      expect(log.lastExit).toBeUndefined();
      await log.append([output(1), exit(2)]);
    }
    expect(statSync(join(dir.path, 'events.jsonl')).mode & 0o777).toBe(0o600);
    await expect(EventLog.begin(dir.path)).rejects.toMatchObject({ code: 'EEXIST' });
    await using log = await EventLog.open(dir.path);
    expect(log.nextSeq).toBe(3);
  });

  it('writes the same bytes whatever the batches are', async () => {
    await fc.assert(
      fc.asyncProperty(
        arbitraryLog(1, 12),
        fc.infiniteStream(fc.integer({ min: 0, max: 4 })),
        async (events, sizes) => {
          await using dir = await temporaryDir();
          await using log = await EventLog.open(dir.path);
          let at = 0;
          while (at < events.length) {
            const size = sizes.next().value ?? 1;
            await log.append(events.slice(at, at + size));
            at += size;
          }
          expect(eventsFile(dir.path)).toEqual(encodeEvents(events));
          expect(log.size).toBe(encodeEvents(events).length);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('goes on where it stopped when it is opened again', async () => {
    await using dir = await temporaryDir();
    const events = [...outputs(1, 4), exit(5, 3)];
    {
      await using log = await EventLog.open(dir.path);
      await log.append(events);
    }
    await using log = await EventLog.open(dir.path);
    expect(log).toMatchObject({ firstSeq: 1, nextSeq: 6, lastExit: events[4] });
    expect(log.lastTimeMicros).toBe(events[4]?.timeMicros);
    await log.append([output(6)]);
    expect(log.lastExit).toBeUndefined();
    expect((await readAll(dir.path)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('refuses a seq that does not go on, a second append at the same time, and one after close', async () => {
    await using dir = await temporaryDir();
    await using log = await EventLog.open(dir.path);
    await expect(log.append([output(2)])).rejects.toThrow('where 1 is next');
    await expect(log.append([output(1), output(3)])).rejects.toThrow('where 2 is next');
    const first = log.append([output(1)]);
    await expect(log.append([output(1)])).rejects.toThrow('in flight');
    await first;
    await log.close();
    await log.close();
    await expect(log.append([output(2)])).rejects.toThrow('closed');
    expect(soundLines(eventsFile(dir.path)).seqs).toEqual([1]);
  });

  it('syncs while it appends', async () => {
    await using dir = await temporaryDir();
    await using log = await EventLog.open(dir.path);
    for (let seq = 1; seq <= 40; seq++) {
      await Promise.all([log.append([output(seq)]), log.sync(), log.sync()]);
    }
    expect(soundLines(eventsFile(dir.path)).seqs).toHaveLength(40);
  });

  it('is read by jq, line by line', async () => {
    if (!has('jq')) return;
    await using dir = await temporaryDir();
    const events: TerminalEvent[] = [
      output(1, Buffer.from([0, 0xff, 0x22, 0x5c])),
      { ...output(2), size: { cols: 80, rows: 24 }, instance: 2 },
      { ...exit(3, 137), signal: 'SIGKILL', reason: 'quote " \\ \u2028 \u{1f600}' },
    ];
    {
      await using log = await EventLog.open(dir.path);
      await log.append(events);
    }
    const path = join(dir.path, 'events.jsonl');
    const seqs = execFileSync('jq', ['-c', '[.seq, .type, (.data_b64 | length)]', path], {
      encoding: 'utf8',
    });
    expect(seqs).toBe('[1,"pty.output",8]\n[2,"pty.output",12]\n[3,"process.exit",0]\n');
    const keys = execFileSync('jq', ['-c', 'keys_unsorted', path], { encoding: 'utf8' });
    expect(keys.split('\n')).toEqual([
      '["seq","ts","type","data_b64","us"]',
      '["seq","ts","type","data_b64","us","cols","rows","instance"]',
      '["seq","ts","type","exit_code","us","signal","reason"]',
      '',
    ]);
  });
});

describe('a log that is broken', () => {
  interface Vector {
    readonly name: string;
    readonly log?: string;
    readonly log_b64?: string;
    readonly sound_bytes: number;
    readonly next_seq: number;
    readonly seqs: readonly number[];
  }
  const vectors: readonly Vector[] = JSON.parse(
    readFileSync(new URL('../vectors/events/logs.json', import.meta.url), 'utf8'),
  );

  it.each(vectors)('is repaired as the vector says: $name', async (vector) => {
    await using dir = await temporaryDir();
    const bytes = Buffer.from(vector.log ?? '').length
      ? Buffer.from(vector.log ?? '')
      : Buffer.from(vector.log_b64 ?? '', 'base64');
    await writeFile(join(dir.path, 'events.jsonl'), bytes);
    await using log = await EventLog.open(dir.path);
    expect(log.nextSeq).toBe(vector.next_seq);
    expect(eventsFile(dir.path)).toEqual(bytes.subarray(0, vector.sound_bytes));
    const torn = bytes.subarray(vector.sound_bytes);
    expect(tornFiles(dir.path)).toEqual(torn.length > 0 ? [torn] : []);
    expect((await readAll(dir.path, log.firstSeq)).map(({ seq }) => seq)).toEqual(vector.seqs);
  });

  /** Opens a log of these bytes and checks it against the plain search for sound lines. */
  async function repair(parent: string, bytes: Buffer): Promise<void> {
    const dir = join(parent, 'log');
    await mkdir(dir);
    writeFileSync(join(dir, 'events.jsonl'), bytes);
    const sound = soundLines(bytes);
    const next = (sound.seqs.at(-1) ?? 0) + 1;
    const log = await EventLog.open(dir);
    try {
      expect(log.nextSeq).toBe(next);
      const torn = bytes.length > sound.bytes ? [bytes.subarray(sound.bytes)] : [];
      expect(tornFiles(dir).map((file) => digest(file))).toEqual(torn.map((part) => digest(part)));
      expect(log.repaired?.bytes ?? 0).toBe(bytes.length - sound.bytes);
      await log.append([output(next, 'after')]);
    } finally {
      await log.close();
    }
    expect(digest(eventsFile(dir))).toBe(
      digest(bytes.subarray(0, sound.bytes), encodeEvents([output(next, 'after')])),
    );
    await rm(dir, { recursive: true });
  }

  it('keeps the longest sound prefix when it is cut at any byte of its last three lines', async () => {
    await using dir = await temporaryDir();
    const whole = encodeEvents([...outputs(1, 4), exit(5)]);
    const from = encodeEvents(outputs(1, 2)).length;
    for (let cut = from; cut <= whole.length; cut++) {
      await repair(dir.path, whole.subarray(0, cut));
    }
  });

  it('keeps the longest sound prefix under NULs, garbage and text at any place', async () => {
    await using dir = await temporaryDir();
    const garbage = fc.oneof(
      fc.integer({ min: 1, max: 5_000 }).map((length) => Buffer.alloc(length)),
      fc.uint8Array({ minLength: 1, maxLength: 400 }).map((bytes) => Buffer.from(bytes)),
      fc.constantFrom('\n', '\n\n', '{}\n', '"}\n', '{"seq":').map((text) => Buffer.from(text)),
    );
    await fc.assert(
      fc.asyncProperty(
        arbitraryLog(3, 6),
        fc.nat(),
        garbage,
        fc.boolean(),
        async (events, at, bad, goesOn) => {
          const whole = encodeEvents(events);
          const cut = at % (whole.length + 1);
          const after = goesOn ? whole.subarray(cut) : Buffer.alloc(0);
          await repair(dir.path, Buffer.concat([whole.subarray(0, cut), bad, after]));
        },
      ),
      { numRuns: 150 },
    );
  });

  it('sets a line aside that is longer than any event, sound JSON or not', async () => {
    await using dir = await temporaryDir();
    const padding = 'x'.repeat(200_000);
    const long = `{"seq":3,"ts":1,"type":"pty.output","data_b64":"QQ==","padding":"${padding}"}\n`;
    const path = join(dir.path, 'events.jsonl');
    await writeFile(path, Buffer.concat([encodeEvents(outputs(1, 2)), Buffer.from(long)]));
    await expect(readAll(dir.path)).rejects.toThrow('longer than');
    await using log = await EventLog.open(dir.path);
    expect(log).toMatchObject({ nextSeq: 3, repaired: { bytes: long.length } });
    await rm(path);
    await repair(
      dir.path,
      Buffer.concat([encodeEvents(outputs(1, 2)), Buffer.alloc(1_000_000, 'x'), Buffer.from('\n')]),
    );
  });

  it('loses nothing of a large log when its end is torn after a close and more', async () => {
    await using dir = await temporaryDir();
    const data = Buffer.alloc(60_000, 'x');
    {
      await using log = await EventLog.open(dir.path);
      for (let seq = 1; seq <= 40; seq++) await log.append([output(seq, data)]);
    }
    const whole = eventsFile(dir.path);
    writeFileSync(join(dir.path, 'events.jsonl'), Buffer.concat([whole, Buffer.alloc(100_000)]));
    {
      await using log = await EventLog.open(dir.path);
      expect(log.nextSeq).toBe(41);
    }
    expect(digest(eventsFile(dir.path))).toBe(digest(whole));
    writeFileSync(join(dir.path, 'events.jsonl'), whole.subarray(0, whole.length - 500_000));
    await using log = await EventLog.open(dir.path);
    expect(log.nextSeq).toBe(soundLines(eventsFile(dir.path)).seqs.length + 1);
    expect(log.nextSeq).toBeLessThan(40);
    expect(tornFiles(dir.path)).toHaveLength(2);
    const kept = Array.from({ length: log.nextSeq - 1 }, () => data);
    expect(digest(...outputOf(await readAll(dir.path)))).toBe(digest(...kept));
  });
});

describe('a log in parts', () => {
  const options = { maxBytes: 2_000 };

  it('seals at its bound, and reads as one', async () => {
    await using dir = await temporaryDir();
    {
      await using log = await EventLog.open(dir.path, options);
      for (let seq = 1; seq <= 200; seq++) await log.append([output(seq)]);
      expect(log).toMatchObject({ firstSeq: 1, nextSeq: 201 });
      expect(log.size).toBe(encodeEvents(outputs(1, 200)).length);
    }
    const names = (await readdir(dir.path)).filter((name) => /^events\.\d+\.jsonl$/.test(name));
    expect(names.length).toBeGreaterThan(5);
    for (const name of names) {
      const sound = soundLines(readFileSync(join(dir.path, name)));
      expect(name).toBe(`events.${sound.seqs[0]}.jsonl`);
      expect(sound.bytes).toBeLessThanOrEqual(options.maxBytes);
      expect(statSync(join(dir.path, name)).mode & 0o777).toBe(0o600);
    }
    expect((await readAll(dir.path)).map(plain)).toEqual(outputs(1, 200).map(plain));
    await using log = await EventLog.open(dir.path, options);
    expect(log).toMatchObject({ firstSeq: 1, nextSeq: 201 });
  });

  it('goes on when the process ended between a seal and the next events.jsonl', async () => {
    await using dir = await temporaryDir();
    {
      await using log = await EventLog.open(dir.path);
      await log.append([...outputs(1, 3), exit(4)]);
    }
    execFileSync('mv', [join(dir.path, 'events.jsonl'), join(dir.path, 'events.1.jsonl')]);
    expect((await readAll(dir.path)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4]);
    await using log = await EventLog.open(dir.path);
    expect(log).toMatchObject({ firstSeq: 1, nextSeq: 5, lastExit: exit(4) });
    await log.append([output(5)]);
    expect((await readAll(dir.path)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5]);
  });

  it('takes no line into events.jsonl that does not follow the sealed part', async () => {
    await using dir = await temporaryDir();
    writeFileSync(join(dir.path, 'events.1.jsonl'), encodeEvents(outputs(1, 3)));
    writeFileSync(join(dir.path, 'events.jsonl'), encodeEvents(outputs(9, 10)));
    await using log = await EventLog.open(dir.path);
    expect(log.nextSeq).toBe(4);
    expect(tornFiles(dir.path)).toEqual([encodeEvents(outputs(9, 10))]);
  });

  it('removes the oldest parts above what is to be kept, never the newest', async () => {
    await using dir = await temporaryDir();
    await using log = await EventLog.open(dir.path, { ...options, retainBytes: 6_000 });
    for (let seq = 1; seq <= 300; seq++) await log.append([output(seq)]);
    expect(log.firstSeq).toBeGreaterThan(200);
    expect(log.size).toBeLessThan(6_000 + options.maxBytes);
    await expect(readAll(dir.path, 1)).rejects.toMatchObject({
      reason: 'SEQ_TRIMMED',
      metadata: { first_seq: String(log.firstSeq) },
    });
    expect((await readAll(dir.path, log.firstSeq)).map(plain)).toEqual(
      outputs(log.firstSeq, 300).map(plain),
    );
    await using tight = await EventLog.open(dir.path, { maxBytes: 100, retainBytes: 0 });
    await tight.append([output(301)]);
    await tight.append([output(302)]);
    expect((await readAll(dir.path, tight.firstSeq)).map(({ seq }) => seq)).toEqual([301, 302]);
  });

  it('removes the parts that are too old, and what it ends with never', async () => {
    await using dir = await temporaryDir();
    for (const [firstSeq, day] of [
      [1, 1],
      [4, 2],
      [7, 3],
    ] as const) {
      const path = join(dir.path, `events.${firstSeq}.jsonl`);
      const end =
        firstSeq === 7 ? [output(7), output(8), exit(9)] : outputs(firstSeq, firstSeq + 2);
      writeFileSync(path, encodeEvents(end));
      utimesSync(path, day * 86_400, day * 86_400);
    }
    await using log = await EventLog.open(dir.path);
    await log.removeOlder(2 * 86_400_000);
    expect(log.firstSeq).toBe(4);
    await log.removeOlder(9 * 86_400_000);
    // events.jsonl is empty: the newest part has the exit.
    expect((await readAll(dir.path, log.firstSeq)).map(plain)).toEqual(
      [output(7), output(8), exit(9)].map(plain),
    );
    await log.append([output(10), exit(11)]);
    await log.removeOlder(9 * 86_400_000);
    expect(log).toMatchObject({ firstSeq: 10, nextSeq: 12 });
    expect((await readAll(dir.path, 10)).map(({ seq }) => seq)).toEqual([10, 11]);
    await expect(readAll(dir.path, 1)).rejects.toMatchObject({
      reason: 'SEQ_TRIMMED',
      metadata: { first_seq: '10' },
    });
  });
});

function has(tool: string): boolean {
  try {
    execFileSync(tool, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    process.stdout.write(`skipped: ${tool} is not installed\n`);
    return false;
  }
}
