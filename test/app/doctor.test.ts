import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { certificateFinding } from '../../src/app/doctor/certificateFinding.js';
import {
  hostFindings,
  nodeFinding,
  spaceFinding,
  useFinding,
} from '../../src/app/doctor/hostFindings.js';
import { holdStateDir } from '../../src/app/heldStateDir.js';
import { skipAloud } from '../support/skipAloud.js';
import { smallDisk } from '../support/smallDisk.js';

const DAY_MS = 24 * 3600_000;

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'grantty-doctor-'));
});
afterEach(() => rm(dir, { recursive: true }));

describe('the version of Node.js', () => {
  it.each([
    ['18.20.0', 'fail'],
    ['20.20.2', 'warn'],
    ['22.23.4', 'warn'],
    ['22.23.5', 'ok'],
    ['22.24.0', 'ok'],
    ['24.0.0', 'ok'],
  ])('%s is %s', (version, level) => {
    expect(nodeFinding(version).level).toBe(level);
  });
});

describe('a certificate', () => {
  it.each([
    ['is fine for long', 0, 'ok'],
    ['should be renewed a week before its end', 24 * DAY_MS, 'warn'],
    ['has expired', 31 * DAY_MS, 'fail'],
    ['is not valid yet to a clock that is behind', -DAY_MS, 'fail'],
  ])('%s', async (_, later, level) => {
    const { server } = makeDevelopmentCertificates({ hosts: ['h'], clientName: 'c', days: 30 });
    await writeFile(join(dir, 'cert'), server.cert);
    await writeFile(join(dir, 'key'), server.key);
    const paths = [join(dir, 'cert'), join(dir, 'key')] as const;
    expect(await certificateFinding('c', ...paths, Date.now() + later)).toMatchObject({ level });
  });

  it('without its own key, or that is none, is told', async () => {
    const { server, client } = makeDevelopmentCertificates({
      hosts: ['h'],
      clientName: 'c',
      days: 30,
    });
    await writeFile(join(dir, 'cert'), server.cert);
    await writeFile(join(dir, 'key'), client.key);
    const paths = [join(dir, 'cert'), join(dir, 'key')] as const;
    expect((await certificateFinding('c', ...paths, Date.now())).found).toContain('not the key');
    expect(await certificateFinding('c', paths[1], undefined, Date.now())).toMatchObject({
      level: 'fail',
    });
  });
});

describe('what runs out', () => {
  const GIB = 1024 ** 3;
  it.each([
    [0, 'fail'],
    [GIB - 1, 'warn'],
    [GIB, 'ok'],
  ])('%d bytes of room are %s', (bavail, level) => {
    const space = { bavail, bsize: 1, files: 0, ffree: 0 };
    expect(spaceFinding('disk', space).level).toBe(level);
  });

  it.each([
    [79, 'ok'],
    [80, 'warn'],
    [100, 'warn'],
  ])('%d of 100 descriptors in use are %s', (used, level) => {
    expect(useFinding('files', used, 100).level).toBe(level);
  });
});

describe('the host', () => {
  const found = async (stateDir: string, config?: string) =>
    new Map(
      (await hostFindings({ stateDir, now: Date.now(), ...(config && { config }) })).map((one) => [
        one.check,
        one,
      ]),
    );

  it('says who holds the locks of a state directory, and when nobody does', async () => {
    const held = await holdStateDir(dir);
    expect((await found(dir)).get('server.lock')?.found).toBe(`held by process ${process.pid}`);
    await held[Symbol.asyncDispose]();
    expect((await found(dir)).get('server.lock')?.found).toBe('free');
  });

  it('says how many descriptors the holder of a lock has in use', async () => {
    await using _held = await holdStateDir(dir);
    expect((await found(dir)).get('files of server')?.found).toMatch(
      /^[1-9]\d* of \d+ descriptors in use$/,
    );
    expect((await found(dir)).has('files of supervisor')).toBe(false);
  });

  it('fails for a state directory on a disk that is read-only', async () => {
    await using disk = await smallDisk(1024 * 1024);
    if (disk === undefined) return skipAloud('needs root and mount(8)');
    await disk.remount('ro');
    expect((await found(disk.path)).get('disk')).toMatchObject({
      level: 'fail',
      found: expect.stringContaining('read-only'),
    });
  });

  it('fails for a disk that is full', async () => {
    await using disk = await smallDisk(1024 * 1024);
    if (disk === undefined) return skipAloud('needs root and mount(8)');
    await disk.fill('fill');
    expect((await found(disk.path)).get('disk')).toMatchObject({ level: 'fail' });
  });

  it('fails for a state directory that others can write to', async () => {
    await chmod(dir, 0o777);
    expect((await found(dir)).get('state directory')).toMatchObject({
      level: 'fail',
      advice: `chmod go-w ${dir}`,
    });
  });

  it('takes one that does not exist yet', async () => {
    expect((await found(join(dir, 'none'))).get('state directory')?.level).toBe('ok');
  });

  it('fails for a configuration that is not valid, with the place', async () => {
    await writeFile(join(dir, 'config.yaml'), 'listen: x\n');
    expect((await found(dir, join(dir, 'config.yaml'))).get('configuration')).toMatchObject({
      level: 'fail',
      found: expect.stringContaining('listen'),
    });
  });

  it('has no failure where the tests of the PTY pass', async () => {
    const levels = [...(await found(dir)).values()].filter(({ level }) => level === 'fail');
    expect(levels).toEqual([]);
  });
});
