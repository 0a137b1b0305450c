/** Where `ctx audit` looks, and what it takes for a time and for an action. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAction, parseTime, trailDir } from '../../src/cli/auditTrail.js';
import { UsageError } from '../../src/cli/exitCode.js';
import { temporaryDir } from '../store/temporaryDir.js';

describe('the trail', () => {
  const { GRANTTY_STATE_DIR: named, XDG_STATE_HOME: home } = process.env;
  beforeEach(() => {
    delete process.env.GRANTTY_STATE_DIR;
    process.env.XDG_STATE_HOME = '/z';
  });
  afterEach(() => {
    for (const [name, value] of Object.entries({
      GRANTTY_STATE_DIR: named,
      XDG_STATE_HOME: home,
    })) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  it('is where the configuration says, in its audit.dir or its state directory', async () => {
    await using dir = await temporaryDir();
    const config = join(dir.path, 'config.yaml');
    const least = 'audience: a\ntls: {cert: c, key: k}\nissuers: [{issuer: i, jwks_file: j}]\n';
    await writeFile(config, `${least}state_dir: d\n`);
    expect(await trailDir({ config })).toBe(join(dir.path, 'd/audit'));
    expect(await trailDir({ config, stateDir: '/x' })).toBe('/x/audit');
    await writeFile(config, `${least}audit: {dir: trail}\n`);
    expect(await trailDir({ config })).toBe(join(dir.path, 'trail'));
    await writeFile(config, least);
    await expect(trailDir({ config })).rejects.toThrow('neither state_dir nor audit.dir');
    await writeFile(config, 'audience: a');
    await expect(trailDir({ config })).rejects.toThrow('tls is required');
  });

  it('is where a flag says before all else, then where the environment does', async () => {
    expect(await trailDir({ auditDir: '/a', stateDir: '/x', config: '/none' })).toBe('/a');
    expect(await trailDir({ stateDir: '/x' })).toBe('/x/audit');
    expect(await trailDir({})).toBe('/z/grantty/audit');
    process.env.GRANTTY_STATE_DIR = '/y';
    expect(await trailDir({})).toBe('/y/audit');
  });
});

describe('a time', () => {
  it.each(['2025-01-01T12:00', '2025', 'yesterday', ''])(
    '%j is none that means one time alone',
    (text) => {
      expect(() => parseTime('--at', text)).toThrow(UsageError);
    },
  );
});

describe('an action', () => {
  it('is one of the seven; for a slip, the one that was meant is named', () => {
    expect(parseAction('terminal.kill')).toBe('terminal.kill');
    expect(() => parseAction('terminal.kil')).toThrow('did you mean terminal.kill?');
    expect(() => parseAction('everything')).toThrow('there are terminal.create, ');
  });
});
