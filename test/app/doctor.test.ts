import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { certificateFinding } from '../../src/app/doctor/certificateFinding.js';
import { hostFindings, nodeFinding } from '../../src/app/doctor/hostFindings.js';
import { holdStateDir } from '../../src/app/heldStateDir.js';

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
