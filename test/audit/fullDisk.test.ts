/** A disk that is really full: a small tmpfs. */
import { readFile, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { openFileTrail } from '../../src/audit/fileTrail.js';
import { RESERVE_BYTES } from '../../src/audit/reserve.js';
import { verifyTrail } from '../../src/audit/verify.js';
import { skipAloud } from '../support/skipAloud.js';
import { smallDisk } from '../support/smallDisk.js';
import { collectingLogger, intentOf, TestClock } from './trails.js';

/** The reserve and a little more. */
const DISK_BYTES = RESERVE_BYTES + 1024 * 1024;

it('keeps stop, kill and their outcomes on a full disk, and goes on when there is room', async () => {
  await using disk = await smallDisk(DISK_BYTES);
  if (disk === undefined) return skipAloud('needs root and mount(8)');
  const dir = join(disk.path, 'audit');
  const clock = new TestClock();
  const { logger } = collectingLogger();
  const options = { dir, clock, logger, header: { version: 'test' } };
  const trail = await openFileTrail(options);
  await trail.intent(intentOf());

  const ballast = join(disk.path, 'ballast');
  await disk.fill('ballast');
  let refused = 0;
  for (let count = 0; count < 20 && refused === 0; count += 1) {
    // What is left of the last page of the file still takes some.
    await trail.intent(intentOf()).catch((error) => {
      expect(error).toMatchObject({ reason: 'AUDIT_UNAVAILABLE' });
      refused += 1;
    });
  }
  expect(refused).toBe(1);
  for (let count = 0; count < 100; count += 1) {
    const action = count % 2 === 0 ? 'terminal.kill' : 'terminal.stop';
    const record = intentOf({ action, decisionId: `full-${count}` });
    await trail.intent(record);
    trail.outcome({ decisionId: record.decisionId, timeMs: clock.now(), status: 'OK' });
  }
  await expect(trail.intent(intentOf({ action: 'terminal.create' }))).rejects.toMatchObject({
    reason: 'AUDIT_UNAVAILABLE',
  });

  // Another server on the same full disk.
  const next = await openFileTrail(options);
  await next.intent(intentOf({ action: 'terminal.kill', decisionId: 'full-100' }));

  await truncate(ballast, 0);
  clock.advance(1_000);
  await next.intent(intentOf());
  await next[Symbol.asyncDispose]();
  expect((await verifyTrail(dir)).state).toBe('sound');
  const text = await readFile(join(dir, '2025-01-01.jsonl'), 'utf8');
  for (let count = 0; count <= 100; count += 1) {
    expect(text.split(`"decision_id":"full-${count}"`)).toHaveLength(count === 100 ? 2 : 3);
  }
  // It counts as killed, but its files are this process's.
  await trail[Symbol.asyncDispose]();
});
