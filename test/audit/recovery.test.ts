/** What a crash leaves behind is found, set aside and told. */
import { appendFile, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { verifyTrail } from '../../src/audit/verify.js';
import { intentOf, NOON, type TestTrail, testTrail } from './trails.js';

const DAY = '2025-01-01.jsonl';

async function crashed(at: TestTrail, records = 3): Promise<Buffer> {
  const trail = await at.open();
  for (let count = 0; count < records; count += 1) await trail.intent(intentOf());
  return readFile(join(at.dir, DAY));
}

async function reopened(at: TestTrail): Promise<string> {
  const trail = await at.open();
  await trail[Symbol.asyncDispose]();
  return readFile(join(at.dir, DAY), 'utf8');
}

async function tornFiles(dir: string): Promise<string[]> {
  return (await readdir(dir)).filter((name) => name.includes('.torn-'));
}

describe('a torn end', () => {
  it('is set aside as it is and put on record, and the chain goes on before it', async () => {
    await using at = await testTrail();
    const whole = await crashed(at);
    const torn = '{"seq":99,"prev":"00';
    await appendFile(join(at.dir, DAY), torn);
    const found = await verifyTrail(at.dir);
    expect(found.state).toBe('incomplete');
    expect(found.notes.join()).toContain('ends in the middle of line');

    const text = await reopened(at);
    expect(text.startsWith(whole.toString())).toBe(true);
    expect(await tornFiles(at.dir)).toEqual([`2025-01-01.torn-${NOON}`]);
    expect(await readFile(join(at.dir, `2025-01-01.torn-${NOON}`), 'utf8')).toBe(torn);
    expect(text).toContain(`"record":"torn","time_ms":${NOON},"file":"2025-01-01.torn-${NOON}"`);
    const verdict = await verifyTrail(at.dir);
    expect(verdict.state).toBe('sound');
    expect(verdict.notes).toEqual([
      `moved to 2025-01-01.torn-${NOON}: ${torn.length} bytes that a crash had left unfinished`,
    ]);
  });

  it('may be cut anywhere, and the next server always goes on soundly', async () => {
    await using at = await testTrail();
    const whole = await crashed(at);
    const file = join(at.dir, DAY);
    const anywhere = fc.nat(whole.length);
    await fc.assert(
      fc.asyncProperty(anywhere, async (length) => {
        for (const name of await tornFiles(at.dir)) await writeFile(join(at.dir, name), '');
        at.clock.advance(1);
        await writeFile(file, whole);
        await truncate(file, length);
        await writeFile(join(at.dir, 'HEAD'), 'none');
        await reopened(at);
        expect((await verifyTrail(at.dir)).state).toBe('sound');
      }),
      { numRuns: 40 },
    );
  });

  it('of zeros, as a power cut leaves them, is set aside too', async () => {
    await using at = await testTrail();
    await crashed(at);
    await appendFile(join(at.dir, DAY), Buffer.alloc(5_000));
    await reopened(at);
    expect((await verifyTrail(at.dir)).state).toBe('sound');
    expect(await tornFiles(at.dir)).toHaveLength(1);
  });

  it('of whole lines that do not follow is no crash, and verify never forgets it', async () => {
    await using at = await testTrail();
    const lines = (await crashed(at, 4)).toString().split(/(?<=\n)/);
    const edited = lines.map((line, index) =>
      index === 4 ? line.replace('alice', 'mallo') : line,
    );
    await writeFile(join(at.dir, DAY), edited.join(''));
    await reopened(at);
    const verdict = await verifyTrail(at.dir);
    expect(verdict.state).toBe('tampered');
    expect(verdict.firstBad?.why).toContain('found at a start, and moved to 2025-01-01.torn-');
    expect(at.logged.map(({ message }) => message)).toContain('a part of the audit was set aside');
  });
});

describe('finding the end', () => {
  it('reads on from the latest checkpoint, not the whole day', async () => {
    await using at = await testTrail();
    await (await at.open())[Symbol.asyncDispose]();
    const file = join(at.dir, DAY);
    const bytes = await readFile(file);
    // Nothing before the checkpoint is looked at: that is for verify.
    await writeFile(file, Buffer.from(bytes).fill('x', 10, 20));
    await reopened(at);
    expect(await tornFiles(at.dir)).toEqual([]);
    expect(await verifyTrail(at.dir)).toMatchObject({ state: 'tampered', firstBad: { line: 1 } });
  });

  it('goes on in an empty file that a crash left at midnight', async () => {
    await using at = await testTrail();
    await crashed(at);
    await writeFile(join(at.dir, '2025-01-02.jsonl'), '', { mode: 0o600 });
    await reopened(at);
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });

  it('reads lines that are longer than its buffer', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    const text = 'x'.repeat(700_000);
    await trail.change({ change: 'policy', timeMs: NOON, hash: 'h', text });
    await trail.intent(intentOf());
    await reopened(at);
    expect((await verifyTrail(at.dir)).state).toBe('sound');
    expect(await tornFiles(at.dir)).toEqual([]);
  });

  it('refuses a change that no reader would take', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    const text = 'x'.repeat(5 * 1024 * 1024);
    await expect(trail.change({ change: 'policy', timeMs: NOON, hash: 'h', text })).rejects.toThrow(
      'cannot be recorded',
    );
    await trail[Symbol.asyncDispose]();
  });
});
