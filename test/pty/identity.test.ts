import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { childEnvironment } from '../../src/pty/environment.js';
import { accountByUid } from '../../src/pty/owner.js';
import { openScript, openTerminal, testEnvironment } from './openTerminal.js';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? it : it.skip;
if (!isRoot) console.warn('skipped: running a child as another user needs root');

const allow = () => undefined;

async function outputOf(
  command: readonly string[],
  spec: Parameters<typeof openTerminal>[1] = {},
): Promise<string> {
  const { pty, output } = openTerminal(command, spec);
  await pty.exit;
  return output().toString();
}

function lines(text: string): string[] {
  return text.split('\r\n').filter((line) => line !== '');
}

describe('the environment of a child', () => {
  it('is exactly what was given, and nothing of this process', async () => {
    process.env.GRANTTY_TEST_SECRET = 'secret of the server';
    const env = childEnvironment({
      account: await accountByUid(0),
      agent: 'coder',
      session: 'default',
      terminal: 'terminal-coder-default',
      instance: 'abc',
      request: {
        LC_ALL: 'C',
        QUOTED: `a=b "c" 'd' $e \`f\` \\g\n*`,
        // In UTF-8 they hold the bytes 0x81 to 0x88, which some shells mark up text with.
        BYTES: 'ÀÁÂÃÄÅÆÇÈ',
        EMPTY: '',
        LD_BIND_NOW: '1',
        ENV: '/e',
        BASH_ENV: '/e',
        IFS: 'x',
        PWD: '/p',
        SHLVL: '7',
        UID: '5',
      },
    });
    const { pty, output, marks } = openTerminal(['/usr/bin/env', '-0'], { env });
    await pty.exit;
    delete process.env.GRANTTY_TEST_SECRET;
    const shown = output().toString().replaceAll('\r\n', '\n').split('\0').slice(0, -1);
    const expected = { ...env, CTX_INSTANCE: marks.nonce };
    expect(shown.sort()).toEqual(
      Object.entries(expected)
        .map(([name, value]) => `${name}=${value}`)
        .sort(),
    );
  });
});

describe('a child', () => {
  it('has its terminal as controlling terminal, and can open it by both names', async () => {
    const text = await outputOf([
      '/bin/sh',
      '-c',
      'echo by-device >/dev/tty; echo by-path >"$(tty)"; ps -o sid=,pgid=,tpgid= -p $$; echo $$',
    ]);
    const [device, path, ids = '', pid = ''] = lines(text);
    expect([device, path]).toEqual(['by-device', 'by-path']);
    expect(ids.trim().split(/\s+/)).toEqual([pid, pid, pid]);
  });

  it('starts in its directory', async () => {
    expect(await outputOf(['/bin/pwd'], { cwd: '/usr/bin' })).toBe('/usr/bin\r\n');
  });

  it('has every signal at its default', async () => {
    const text = await outputOf(['/bin/grep', '-E', 'Sig(Blk|Ign)', '/proc/self/status']);
    const masks = lines(text).map((line) => BigInt(`0x${line.split('\t')[1]}`));
    // Signals 32 and 33 are the C library's own (nptl(7)): it lets nobody set them, us neither.
    const ours = ~((1n << 31n) | (1n << 32n));
    expect(masks.map((mask) => mask & ours)).toEqual([0n, 0n]);
  });

  it('has its arguments as they were given', async () => {
    const args = ['', ' a  b ', '*', '$HOME', '"', "'", '\\', 'ÀÁÂÃÄÅÆÇÈ', '-n', '--'];
    const shown = await outputOf(['/usr/bin/printf', '[%s]', ...args]);
    expect(shown).toBe(args.map((arg) => `[${arg}]`).join(''));
  });

  it('keeps its pid through all that comes before the command', async () => {
    const { pty, output } = openScript('echo $$');
    await pty.exit;
    expect(output().toString()).toBe(`${pty.pid}\r\n`);
  });

  it('that cannot be executed ends with an exit code and says why', async () => {
    const { pty, output } = openTerminal(['/etc/hostname']);
    expect([126, 127]).toContain((await pty.exit).exitCode);
    expect(output().toString()).toContain('/etc/hostname');
  });
});

describe('a child of another user', () => {
  const uid = 1000;
  let dir: string;

  beforeAll(() => {
    dir = mkdtempSync(`${tmpdir()}/grantty-identity-`);
  });
  afterAll(() => {
    rmSync(dir, { recursive: true });
  });

  asRoot('has that uid, only its own group, and gains no privileges', async () => {
    const text = await outputOf(
      ['/bin/grep', '-E', '^(Uid|Gid|Groups|NoNewPrivs|CapEff|CapPrm|CapAmb)', '/proc/self/status'],
      { runAs: { uid } },
    );
    expect(lines(text).map((line) => line.trimEnd())).toEqual([
      'Uid:\t1000\t1000\t1000\t1000',
      'Gid:\t1000\t1000\t1000\t1000',
      'Groups:',
      'CapPrm:\t0000000000000000',
      'CapEff:\t0000000000000000',
      'CapAmb:\t0000000000000000',
      'NoNewPrivs:\t1',
    ]);
  });

  asRoot('has the groups of its account', async () => {
    const account = await accountByUid(1);
    const text = await outputOf(['/usr/bin/id'], {
      runAs: { uid: 1, ...(account.gid !== undefined && { gid: account.gid }) },
    });
    expect(text).toMatch(/^uid=1\(daemon\) gid=1\(daemon\) groups=1\(daemon\)\r\n$/);
  });

  asRoot('can open its own terminal by both names, and take input', async () => {
    const { pty, seen } = openScript(
      'echo by-device >/dev/tty; echo by-path >"$(tty)"; read line <"$(tty)"; echo "got $line"',
      { runAs: { uid } },
    );
    await seen('by-path');
    await pty.send(Buffer.from('hello\n'), allow);
    await seen('got hello');
    expect((await pty.exit).exitCode).toBe(0);
  });

  asRoot('is not reached as root by what a request puts into its environment', async () => {
    const script = `${dir}/start.sh`;
    writeFileSync(script, 'id -u >&2\n');
    const env = {
      ...testEnvironment,
      LD_DEBUG: 'files',
      LD_DEBUG_OUTPUT: `${dir}/debug`,
      GLIBC_TUNABLES: 'glibc.malloc.check=3',
      BASH_ENV: script,
    };
    const shown = await outputOf(['/usr/bin/env'], { env, runAs: { uid } });
    expect(shown).not.toMatch(/^0\r$/m);
    for (const [name, value] of Object.entries(env)) expect(shown).toContain(`${name}=${value}`);
    expect(shown).not.toContain('GRANTTY_LAUNCH');
  });

  asRoot('cannot read what only root may', async () => {
    const { pty } = openTerminal(['/bin/cat', '/etc/shadow'], { runAs: { uid } });
    expect((await pty.exit).exitCode).toBe(1);
  });

  asRoot.each([0, -1, 1.5, 4_294_967_295, 4_294_967_296])('is never started as uid %d', (bad) => {
    expect(() => openTerminal(['/usr/bin/id'], { runAs: { uid: bad } })).toThrow(/not run as uid/);
  });
});
