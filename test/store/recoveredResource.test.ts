import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  lstatSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { link, rename, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { EventLog } from '../../src/store/eventLog.js';
import { recoverResource } from '../../src/store/recoveredResource.js';
import { makePastTerminals } from '../support/pastTerminals.js';
import { output } from './events.js';
import { temporaryDir } from './temporaryDir.js';

const FILES = ['state', 'status', 'owner', 'cwd'];

async function pastTerminal() {
  const state = await temporaryDir();
  const [id = ''] = makePastTerminals(state.path, '1000', 1);
  const dir = join(state.path, 'home/1000/agent/past/session/s0/terminal', id);
  return { dir, state, [Symbol.asyncDispose]: () => state[Symbol.asyncDispose]() };
}

describe('a resource at the start of a supervisor', () => {
  it('is read with the ends of its log and what that holds, and nothing of it is written', async () => {
    await using past = await pastTerminal();
    const { dir } = past;
    const inodes = () => readdirSync(dir).map((file) => lstatSync(join(dir, file)).ino);
    const before = inodes();
    const { record, seqs, logBytes } = await recoverResource(dir);
    expect(record).toMatchObject({ owner: '1000', state: 'exited', exit: { exitCode: 0 } });
    expect(seqs).toEqual({ first: 1, next: 3 });
    expect(logBytes).toBe(readFileSync(join(dir, 'events.jsonl')).length);
    expect(inodes()).toEqual(before);
  });

  it.each(FILES)('has its %s written anew where that says something else', async (file) => {
    await using past = await pastTerminal();
    const path = join(past.dir, file);
    const right = readFileSync(path, 'utf8');
    const wrongs = ['', 'x', `${right}more`, right.replace(/.$/m, 'X')];
    for (const wrong of wrongs) {
      writeFileSync(path, wrong);
      await recoverResource(past.dir);
      expect(readFileSync(path, 'utf8')).toBe(right);
    }
    rmSync(path);
    await symlink('/etc/hostname', path);
    await recoverResource(past.dir);
    expect([lstatSync(path).isFile(), readFileSync(path, 'utf8')]).toEqual([true, right]);
  });

  it('leaves a log to who opens it when it does not end with a whole exit', async () => {
    await using past = await pastTerminal();
    const path = join(past.dir, 'events.jsonl');
    const sound = readFileSync(path);
    const [first = ''] = sound.toString().split('\n');
    const ends = [
      '',
      `${first}\n`,
      '\n',
      '{"seq":3',
      '\0\0\0',
      'x\n',
      `${sound}${'y'.repeat(9000)}\n`,
    ];
    for (const end of ends) {
      writeFileSync(path, end.startsWith('{"seq":3') ? `${sound}${end}` : end);
      expect((await recoverResource(past.dir)).seqs).toBeUndefined();
    }
    rmSync(path);
    expect(await recoverResource(past.dir)).toMatchObject({ seqs: undefined, logBytes: 0 });
  });

  it('finds the ends of a long log, sealed parts included, as its writer does', async () => {
    await using past = await pastTerminal();
    const { dir } = past;
    rmSync(join(dir, 'events.jsonl'));
    {
      await using log = await EventLog.open(dir, { maxBytes: 16_384 });
      for (let seq = 1; seq <= 40; seq += 1) await log.append([output(seq, 'x'.repeat(1_000))]);
      await log.append([{ type: 'process.exit', seq: 41, timeMicros: 1, exitCode: 0 }]);
    }
    const parts = readdirSync(dir).filter((file) => file.endsWith('.jsonl'));
    expect(parts.length).toBeGreaterThan(2);
    const found = await recoverResource(dir);
    expect(found.seqs).toEqual({ first: 1, next: 42 });
    await using log = await EventLog.open(dir);
    expect(found).toMatchObject({
      seqs: { first: log.firstSeq, next: log.nextSeq },
      logBytes: log.size,
    });
  });

  it.each(['symbolic link', 'hard link', 'FIFO'])(
    'does not look into a log that is a %s',
    async (kind) => {
      await using past = await pastTerminal();
      const path = join(past.dir, 'events.jsonl');
      const outside = join(past.state.path, 'outside');
      await rename(path, outside);
      if (kind === 'symbolic link') await symlink(outside, path);
      if (kind === 'hard link') await link(outside, path);
      if (kind === 'FIFO') execFileSync('mkfifo', [path]);
      expect((await recoverResource(past.dir)).seqs).toBeUndefined();
    },
  );

  it('is refused without a sound record', async () => {
    await using past = await pastTerminal();
    const path = join(past.dir, 'meta.json');
    appendFileSync(path, 'x');
    await expect(recoverResource(past.dir)).rejects.toThrow('unsound');
    rmSync(path);
    await expect(recoverResource(past.dir)).rejects.toMatchObject({ code: 'ENOENT' });
    await symlink('/etc/hostname', path);
    await expect(recoverResource(past.dir)).rejects.toMatchObject({ code: 'ELOOP' });
  });
});
