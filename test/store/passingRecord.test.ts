import * as fs from 'node:fs';
import { basename } from 'node:path';
import { jest } from '@jest/globals';
import type { Name } from '../../src/core/names.js';
import type { TerminalRecord } from '../../src/core/terminal.js';
import { temporaryDir } from './temporaryDir.js';

/** Names of what was synced, in order: of a file that has no name of its own yet, `new`. */
const synced: string[] = [];

jest.unstable_mockModule('node:fs', () => ({
  ...fs,
  fsync(fd: number, done: fs.NoParamCallback) {
    const name = basename(fs.readlinkSync(`/proc/self/fd/${fd}`));
    synced.push(name.includes('meta.json-') ? 'new' : name);
    fs.fsync(fd, done);
  },
}));

const { readRecord, writePassingRecord } = await import('../../src/store/metadata.js');

const name = (text: string) => text as Name;
const record: TerminalRecord = {
  owner: name('1000'),
  agent: name('coder'),
  session: name('default'),
  id: name('t1'),
  cwd: '/',
  command: ['true'],
  state: 'created',
  createdAt: 1,
  uid: 'u',
  instance: 0,
  size: { cols: 80, rows: 24 },
  title: '',
  labels: {},
  backend: 'command',
  name: '',
  onExit: 'leave',
  updatedAt: 1,
  logEpoch: 1,
};

it('puts a record that passes on disk before it takes the name of another, and does not where it is the first', async () => {
  await using dir = await temporaryDir();
  await writePassingRecord(dir.path, record);
  expect(synced).toEqual([]);
  const size = { cols: 100, rows: 30 };
  await writePassingRecord(dir.path, { ...record, size });
  expect(synced).toEqual(['new']);
  expect((await readRecord(dir.path)).size).toEqual(size);
});
