import { execFile } from 'node:child_process';
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkConfiguration } from '../../src/app/config.js';
import { PACKAGED_POLICY_DIR } from '../../src/auth/cedarFiles.js';
import { type TemporaryDir, temporaryDir } from '../store/temporaryDir.js';

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly error: string;
}

function ctx(...args: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(process.execPath, [main, 'policy', ...args], (_, out, error) =>
      resolve({ code: child.exitCode, out, error }),
    );
  });
}

let dir: TemporaryDir;
beforeEach(async () => {
  dir = await temporaryDir();
  await cp(PACKAGED_POLICY_DIR, dir.path, { recursive: true });
});
afterEach(() => dir[Symbol.asyncDispose]());

describe('ctx policy check', () => {
  it('tells the hash of sound policies, by default of those that come with the program', async () => {
    const [packaged, copied] = await Promise.all([ctx('check', '--json'), ctx('check', dir.path)]);
    expect([packaged.code, copied.code]).toEqual([0, 0]);
    expect(copied.out).toContain(JSON.parse(packaged.out).hash);
  });

  it('fails for a misspelt action, with the place and what was meant', async () => {
    const policy =
      '@id("k")\nforbid(principal, action == Grantty::Action::"terminal.kil", resource);';
    await writeFile(join(dir.path, 'own.cedar'), policy);
    const { code, out } = await ctx('check', dir.path);
    expect(code).toBe(1);
    expect(out).toMatch(/^error +own\.cedar:2:29: k: .*did you mean.*"terminal\.kill"/);
  });
});

describe('ctx policy test', () => {
  it('fails for a case that comes out otherwise and for a forbid that no case misses', async () => {
    const file = join(dir.path, 'tests', 'base.json');
    const table = await readFile(file, 'utf8');
    await writeFile(file, table.replace('"permit-observation"', '"permit-operation"'));
    const wrong = await ctx('test', dir.path);
    expect(wrong.code).toBe(1);
    expect(wrong.out).toContain('got       permit by permit-observation');

    await writeFile(file, table);
    expect(await ctx('test', dir.path)).toMatchObject({ code: 0, error: '' });

    const forbid = '@id("own") forbid(principal, action, resource) when { resource.owner == "7" };';
    await writeFile(join(dir.path, 'own.cedar'), forbid);
    const lost = await ctx('test', dir.path, '--json');
    expect(lost.code).toBe(1);
    expect(JSON.parse(lost.out)).toMatchObject({ failures: [], unguarded: ['own'] });
  });
});

describe('ctx policy explain', () => {
  it('tells decision, policies and what could not be evaluated', async () => {
    const tuple = ['--resource', '1000/coder/default/t1'];
    const remote = ['--actor', 'agent-7', '--peer', '203.0.113.7'];
    const [denied, permitted] = await Promise.all([
      ctx('explain', '--action', 'terminal.kill', ...tuple, ...remote),
      ctx('explain', '--action', 'terminal.kill', ...tuple, ...remote, '--proof', '--json'),
    ]);
    expect(denied).toMatchObject({ code: 0 });
    expect(denied.out).toMatch(/decision +deny\npolicies +delegated-kill-needs-proof\n/);
    expect(JSON.parse(permitted.out)).toMatchObject({
      decision: 'permit',
      policies: ['permit-lifecycle'],
      errors: [],
    });

    const failing =
      '@id("bad") forbid(principal, action, resource) when { principal.delegation_depth + 9223372036854775807 > 0 };';
    await writeFile(join(dir.path, 'own.cedar'), failing);
    const request = {
      principal: { issuer: 'i', subject: 's', actors: ['a'] },
      action: 'terminal.read',
      resource: { owner: '1000', agent: 'coder', session: 'default', terminal: 't1' },
    };
    const file = join(dir.path, 'request.json');
    await writeFile(file, JSON.stringify(request));
    const { out } = await ctx('explain', '--policy', dir.path, '--request', file, '--json');
    expect(JSON.parse(out)).toMatchObject({
      decision: 'deny',
      policies: ['bad'],
      errors: [{ policy: 'bad', message: expect.stringContaining('overflow') }],
    });
  });

  it('takes signals by their short names too, and says what is none', async () => {
    const asked = ['explain', '--action', 'terminal.signal', '--resource', '1000/coder/default/t1'];
    const [short, long] = await Promise.all([
      ctx(...asked, '--signal', 'INT', '--raises', 'tstp'),
      ctx(...asked, '--signal', 'SIGINT', '--raises', 'SIGTSTP'),
    ]);
    expect(short).toMatchObject({ code: 0 });
    expect(short).toEqual(long);
    const { code, error } = await ctx(...asked, '--signal', 'FOO');
    expect(code).toBe(2);
    expect(error).toContain('"FOO" is not a signal; known are HUP, INT');
  });

  it('says of a directory that is not there that it is not', async () => {
    const { code, error } = await ctx('check', join(dir.path, 'nope'));
    expect(code).toBe(1);
    expect(error).toMatch(/nope cannot be read: it does not exist; name a directory of policies/);
  });

  it('refuses a request that says something unknown', async () => {
    const file = join(dir.path, 'request.json');
    await writeFile(file, '{"action": "terminal.kil", "now": 1}');
    const { code, error } = await ctx('explain', '--request', file);
    expect(code).toBe(2);
    expect(error).toMatch(/principal: .*action: .*now/s);
  });
});

describe('the configuration', () => {
  it('names a directory of policies, meant from its own folder', () => {
    const rest = {
      audience: 'a',
      tls: { cert: 'c', key: 'k' },
      issuers: [{ issuer: 'i', jwks_file: 'j' }],
    };
    const { policy } = checkConfiguration('/etc/grantty/server.yaml', {
      ...rest,
      policy: 'policy',
    });
    expect(policy).toBe('/etc/grantty/policy');
    expect(checkConfiguration('/etc/grantty/server.yaml', rest).policy).toBeUndefined();
  });
});
