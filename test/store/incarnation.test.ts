/** Readers of a terminal beside the deletion of it and the making of another one of the same name. */
import { mkdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { EventLog } from '../../src/store/eventLog.js';
import { writeRecord } from '../../src/store/metadata.js';
import { LogReader } from '../../src/store/reader/logReader.js';
import { recordFromJson } from '../../src/store/recordJson.js';
import { output } from './events.js';
import { temporaryDir } from './temporaryDir.js';

const COUNT = 9;

function recordOf(uid: string, title = '') {
  const written = { id: 't', agent: 'a', session: 's', owner: '1000', cwd: '/', command: ['sh'] };
  return recordFromJson(
    JSON.stringify({ ...written, state: 'exited', created_at: 1, uid, title, log_epoch: 1 }),
  );
}

/** A log of a part for each event, whose output says whose it is. */
async function makeTerminal(dir: string, uid: string, count = COUNT): Promise<void> {
  await mkdir(dir);
  await writeRecord(dir, recordOf(uid));
  await using log = await EventLog.open(dir, { maxBytes: 100 });
  for (let seq = 1; seq <= count; seq += 1) await log.append([output(seq, `of ${uid}\r\n`)]);
}

async function readOf(reader: LogReader, afterFirst: () => Promise<void>): Promise<string[]> {
  const texts: string[] = [];
  for await (const batch of reader.read(1, COUNT, { batchBytes: 1 })) {
    if (texts.length === 0) await afterFirst();
    texts.push(...batch.map((event) => ('data' in event ? event.data.toString().trim() : '')));
  }
  return texts;
}

const deleted = { reason: 'TERMINAL_NOT_FOUND' };

describe('a reader of one incarnation of a terminal', () => {
  it('is told that it was deleted, and nothing of the one that took its place', async () => {
    await using parent = await temporaryDir();
    const dir = join(parent.path, 't');
    await makeTerminal(dir, 'old');
    await using reader = await LogReader.open(dir, 'old');
    const replaced = async () => {
      await rename(dir, join(parent.path, '.removed'));
      await makeTerminal(dir, 'new', COUNT + 3);
    };
    await expect(readOf(reader, replaced)).rejects.toMatchObject(deleted);
    await expect(reader.read(1, COUNT).next()).rejects.toMatchObject(deleted);
    await expect(reader.firstSeq()).rejects.toMatchObject(deleted);
    await expect(reader.seqForTail(10, COUNT)).rejects.toMatchObject(deleted);
    await expect(LogReader.open(dir, 'old')).rejects.toMatchObject(deleted);
    await using other = await LogReader.open(dir, 'new');
    expect(await readOf(other, async () => {})).toEqual(Array(COUNT).fill('of new'));
  });

  it('does not learn either that the next one has no log, or has trimmed it', async () => {
    await using parent = await temporaryDir();
    const dir = join(parent.path, 't');
    await makeTerminal(dir, 'old');
    await using reader = await LogReader.open(dir, 'old');
    await rename(dir, join(parent.path, '.removed'));
    await mkdir(dir);
    await expect(reader.read(1, COUNT).next()).rejects.toMatchObject(deleted);
    await writeRecord(dir, recordOf('new'));
    await expect(reader.read(1, COUNT).next()).rejects.toMatchObject(deleted);
    await using log = await EventLog.open(dir);
    await log.append([output(1)]);
    await log.close();
    await rename(join(dir, 'events.jsonl'), join(dir, 'events.7.jsonl'));
    await expect(reader.read(1, COUNT).next()).rejects.toMatchObject(deleted);
  });

  it('goes on when the record of it changes, and where another program wrote one without a uid', async () => {
    await using parent = await temporaryDir();
    for (const uid of ['mine', '']) {
      const dir = join(parent.path, `t${uid}`);
      await makeTerminal(dir, uid);
      await using reader = await LogReader.open(dir, 'mine');
      const retitled = () => writeRecord(dir, recordOf(uid, 'another title'));
      expect(await readOf(reader, retitled)).toEqual(Array(COUNT).fill(`of ${uid}`.trim()));
    }
  });
});
