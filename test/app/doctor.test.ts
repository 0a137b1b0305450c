import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setImmediate as immediate } from 'node:timers/promises';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { certificateFinding } from '../../src/app/doctor/certificateFinding.js';
import { hostFindings, nodeFinding, useFinding } from '../../src/app/doctor/hostFindings.js';
import { spaceFinding } from '../../src/app/doctor/stateDirFindings.js';
import { holdStateDir } from '../../src/app/heldStateDir.js';
import { lockHolder } from '../../src/store/lock.js';
import { supervisorSocket } from '../../src/supervisor/detached.js';
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

  it('fails for each key of a configuration that is wrong, and says where it is explained', async () => {
    const file = join(dir, 'config.yaml');
    await writeFile(file, 'listen: x\ntls: {cert: c}\n');
    const told = await hostFindings({ config: file, now: Date.now() });
    expect(told.filter(({ check }) => check === 'configuration')).toEqual([
      {
        check: 'configuration',
        level: 'fail',
        found: expect.stringMatching(/^\S+config\.yaml: listen must be HOST:PORT/),
        advice: 'see listen under "Configuration" in docs/operations.md',
      },
      expect.objectContaining({ found: `${file}: audience is required` }),
      expect.objectContaining({
        found: `${file}: tls.key is required`,
        advice: 'see tls under "Configuration" in docs/operations.md',
      }),
      expect.objectContaining({ found: `${file}: issuers is required` }),
    ]);
  });

  it('looks at no state directory that nobody has named, and at one that is named all the same', async () => {
    const file = join(dir, 'config.yaml');
    await writeFile(file, 'nonsense: 1\n');
    const told = await hostFindings({ config: file, now: Date.now() });
    expect(told.find(({ check }) => check === 'state directory')).toMatchObject({
      level: 'warn',
      found: expect.stringContaining('not looked at'),
    });
    expect(told.some(({ check }) => check === 'disk')).toBe(false);
    expect((await found(dir, file)).get('disk')).toBeDefined();
  });

  it('fails for each file that the configuration names and that is not there, with its key', async () => {
    const file = join(dir, 'config.yaml');
    await writeFile(
      file,
      `audience: a
tls: {cert: c.pem, key: k.pem, client_ca: ca.pem}
issuers: [{issuer: i, jwks_file: j.json}]
policy: policies
`,
    );
    const told = await hostFindings({ config: file, now: Date.now() });
    const failures = told.filter(({ level }) => level === 'fail');
    expect(failures.map((one) => one.found.slice(file.length + 2))).toEqual([
      'state_dir is required',
      `tls.cert: ${dir}/c.pem cannot be read: it does not exist`,
      `tls.key: ${dir}/k.pem cannot be read: it does not exist`,
      `tls.client_ca: ${dir}/ca.pem cannot be read: it does not exist`,
      `issuers[0].jwks_file: ${dir}/j.json cannot be read: it does not exist`,
      `policy: ${dir}/policies cannot be read: it does not exist`,
    ]);
    expect(failures.map(({ advice }) => advice)).toContain('put it there, or change tls.key');
  });

  it('fails while a server waits for a supervisor that nobody runs, and for one that does not answer', async () => {
    expect((await found(dir)).has('supervisor')).toBe(false);
    await using _server = await holdStateDir(dir);
    expect((await found(dir)).get('supervisor')).toMatchObject({
      level: 'fail',
      found: `none runs, and the server (process ${process.pid}) waits for it`,
      advice: expect.stringContaining(`"ctx supervise --config FILE --state-dir ${dir}"`),
    });
    await mkdir(join(dir, 'dev'));
    expect((await found(dir)).get('supervisor')?.advice).toContain(
      `"ctx supervise --dev --state-dir ${dir}"`,
    );
    await rm(join(dir, 'dev'), { recursive: true });
    const lock = join(dir, 'supervisor.lock');
    const other = spawn('flock', [lock, 'cat'], { stdio: ['pipe', 'ignore', 'ignore'] });
    try {
      while ((await lockHolder(lock)) === undefined) await immediate();
      expect((await found(dir)).get('supervisor')).toMatchObject({
        level: 'fail',
        found: expect.stringContaining('does not answer (ENOENT)'),
      });
      await mkdir(dirname(supervisorSocket(dir)), { mode: 0o700 });
      const listening = createServer((socket) => socket.destroy()).listen(supervisorSocket(dir));
      await once(listening, 'listening');
      expect((await found(dir)).get('supervisor')).toMatchObject({ level: 'ok' });
      listening.close();
    } finally {
      other.stdin?.end();
      await once(other, 'exit');
    }
  });

  it('has no failure where the tests of the PTY pass', async () => {
    const levels = [...(await found(dir)).values()].filter(({ level }) => level === 'fail');
    expect(levels).toEqual([]);
  });
});
