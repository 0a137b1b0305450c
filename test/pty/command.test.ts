import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { resolveCommand, resolveCwd } from '../../src/pty/command.js';
import { openTerminal } from './openTerminal.js';

const isRoot = process.getuid?.() === 0;
const asRoot = isRoot ? it : it.skip;
if (!isRoot) console.warn('skipped: the rights of another user are only computed by root');

const runAs = { uid: 1000 };
let dir: string;

function file(name: string, content: string, mode = 0o755): string {
  const path = `${dir}/${name}`;
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

beforeAll(() => {
  dir = realpathSync(mkdtempSync(`${tmpdir()}/grantty-command-`));
  chmodSync(dir, 0o755);
  file('tool', '#!/bin/sh\necho tool\n');
  file('plain', 'echo plain\n');
  file('private', '#!/bin/sh\n', 0o700);
  file('data', 'text\n', 0o644);
  file('orphan', '#!/no/such/interpreter -x\n');
  file('unreadable-interpreter', `#!${dir}/data\n`);
  file('spaced', '#! \t/bin/sh  -e\n');
  file('nested', `#!${dir}/tool\n`);
  file('nested-orphan', `#!${dir}/orphan\n`);
  file('endless', `#!${dir}/endless\n`);
  file('relative', '#!./tool\n');
  file('dos', '#!/bin/sh\r\n');
  symlinkSync('tool', `${dir}/link`);
  symlinkSync('loop', `${dir}/loop`);
  symlinkSync('/no/such/file', `${dir}/dangling`);
  mkdirSync(`${dir}/sub`);
  mkdirSync(`${dir}/sub/deep`);
  mkdirSync(`${dir}/subway`);
  mkdirSync(`${dir}/closed`);
  mkdirSync(`${dir}/closed/open`);
  chmodSync(`${dir}/closed`, 0o700);
  symlinkSync(`${dir}/closed/open`, `${dir}/through`);
  symlinkSync('..', `${dir}/sub/up`);
  symlinkSync('sub/deep', `${dir}/down`);
  writeFileSync(`${dir}/closed/open/tool`, '#!/bin/sh\n', { mode: 0o755 });
});

afterAll(() => {
  rmSync(dir, { recursive: true });
});

describe('a command', () => {
  const context = () => ({ path: `/no/such/dir:${dir}:/usr/bin:/bin`, cwd: dir });

  it('is found on the PATH of the child, in its order', async () => {
    expect(await resolveCommand(['tool', 'a', ''], context())).toEqual([`${dir}/tool`, 'a', '']);
    expect(await resolveCommand(['env'], context())).toEqual(['/usr/bin/env']);
  });

  it('with a slash is taken from its directory, and as it is named', async () => {
    expect(await resolveCommand(['./link'], context())).toEqual([`${dir}/./link`]);
    expect(await resolveCommand(['sub/../tool'], context())).toEqual([`${dir}/sub/../tool`]);
    expect(await resolveCommand(['/bin/sh'], { path: undefined, cwd: '/' })).toEqual(['/bin/sh']);
  });

  it.each([
    ['missing', 'is not on the PATH'],
    ['./missing', 'does not exist'],
    ['./data', 'may not be executed'],
    ['data', 'may not be executed'],
    ['./sub', 'is a directory'],
    ['sub', 'is a directory'],
    ['./data/x', 'does not exist'],
    ['./loop', 'is a loop of symbolic links'],
    ['./dangling', 'does not exist'],
    ['/dev/null', 'is not a regular file'],
    ['./orphan', 'needs the interpreter /no/such/interpreter, which does not exist'],
    ['./unreadable-interpreter', 'may not be executed'],
    ['./nested-orphan', 'which needs the interpreter /no/such/interpreter'],
    ['./endless', 'too many interpreters'],
    ['./dos', 'which does not exist'],
    [`./${'x'.repeat(300)}`, 'too long'],
    ['', 'is empty'],
    ['a\0b', 'NUL'],
  ])('%j is refused with the reason', async (name, reason) => {
    await expect(resolveCommand([name], context())).rejects.toMatchObject({
      reason: 'COMMAND_NOT_FOUND',
      message: expect.stringContaining(reason),
    });
  });

  it('without any element is refused', async () => {
    await expect(resolveCommand([], context())).rejects.toMatchObject({
      reason: 'COMMAND_NOT_FOUND',
    });
  });

  it.each(['tool', 'plain', 'spaced', 'nested', 'relative', 'link'])(
    '%s is accepted and can be executed',
    async (name) => {
      const command = await resolveCommand([`./${name}`], context());
      const { pty } = openTerminal(command, { cwd: dir });
      expect((await pty.exit).exitCode).toBe(0);
    },
  );

  it('is judged by what its file says now, whatever it said when it was looked into before', async () => {
    const now = Date.now();
    // As if it had not been changed for a while, so that what it says is remembered.
    const clock = jest.spyOn(Date, 'now').mockReturnValue(now + 60_000);
    try {
      file('changing', '#!/bin/sh\n');
      expect(await resolveCommand(['./changing'], context())).toEqual([`${dir}/./changing`]);
      file('changing', '#!/no/such/interpreter\n');
      await expect(resolveCommand(['./changing'], context())).rejects.toMatchObject({
        message: expect.stringContaining('needs the interpreter /no/such/interpreter'),
      });
    } finally {
      clock.mockRestore();
    }
  });

  it('goes on along the PATH past what cannot be executed', async () => {
    const path = `${dir}/sub:${dir}`;
    mkdirSync(`${dir}/sub/tool`);
    expect(await resolveCommand(['tool'], { path, cwd: '/' })).toEqual([`${dir}/tool`]);
  });

  asRoot('is looked up with the rights of the owner', async () => {
    const refused = { reason: 'COMMAND_NOT_FOUND' };
    const owner = { ...context(), runAs };
    expect(await resolveCommand(['./tool'], owner)).toEqual([`${dir}/./tool`]);
    await expect(resolveCommand(['./private'], owner)).rejects.toMatchObject(refused);
    await expect(resolveCommand(['./closed/open/tool'], owner)).rejects.toMatchObject(refused);
    await expect(resolveCommand(['./through/tool'], owner)).rejects.toMatchObject(refused);
    chownSync(`${dir}/private`, runAs.uid, 0);
    expect(await resolveCommand(['./private'], owner)).toEqual([`${dir}/./private`]);
    chownSync(`${dir}/private`, 0, runAs.uid);
    chmodSync(`${dir}/private`, 0o710);
    expect(await resolveCommand(['./private'], owner)).toEqual([`${dir}/./private`]);
    chmodSync(`${dir}/private`, 0o701);
    await expect(resolveCommand(['./private'], owner)).rejects.toMatchObject(refused);
  });
});

describe('a working directory', () => {
  it('has its links followed', async () => {
    expect(await resolveCwd(`${dir}/down`)).toBe(`${dir}/sub/deep`);
    expect(await resolveCwd(`${dir}/sub/up/sub/./deep/..//`)).toBe(`${dir}/sub`);
    expect(await resolveCwd('/')).toBe('/');
    expect(await resolveCwd('/../..')).toBe('/');
  });

  it.each([
    ['relative', 'absolute'],
    ['', 'absolute'],
    ['/no/such/directory', 'does not exist'],
    ['/etc/hostname', 'not a directory'],
    ['/etc/hostname/x', 'does not exist'],
    ['/tmp\0', 'NUL'],
  ])('%j is refused with the reason', async (cwd, reason) => {
    await expect(resolveCwd(cwd)).rejects.toMatchObject({
      reason: 'CWD_INVALID',
      message: expect.stringContaining(reason),
    });
  });

  it('lies below an allowed one by whole segments, after links', async () => {
    const outside = { reason: 'CWD_INVALID', message: expect.stringContaining('outside') };
    const cwdUnder = ['/no/such', `${dir}/sub`];
    expect(await resolveCwd(`${dir}/sub`, { cwdUnder })).toBe(`${dir}/sub`);
    expect(await resolveCwd(`${dir}/down`, { cwdUnder })).toBe(`${dir}/sub/deep`);
    await expect(resolveCwd(`${dir}/subway`, { cwdUnder })).rejects.toMatchObject(outside);
    await expect(resolveCwd(`${dir}/sub/..`, { cwdUnder })).rejects.toMatchObject(outside);
    await expect(resolveCwd(`${dir}/sub/up`, { cwdUnder })).rejects.toMatchObject(outside);
    await expect(resolveCwd(dir, { cwdUnder: [] })).rejects.toMatchObject(outside);
    expect(await resolveCwd(dir, { cwdUnder: ['/'] })).toBe(dir);
  });

  asRoot('must be one that the owner may enter', async () => {
    const refused = { reason: 'CWD_INVALID' };
    expect(await resolveCwd(`${dir}/sub`, { runAs })).toBe(`${dir}/sub`);
    await expect(resolveCwd(`${dir}/closed`, { runAs })).rejects.toMatchObject(refused);
    await expect(resolveCwd(`${dir}/closed/open`, { runAs })).rejects.toMatchObject(refused);
    await expect(resolveCwd(`${dir}/through`, { runAs })).rejects.toMatchObject(refused);
  });

  asRoot('is judged as the kernel does for that user', async () => {
    for (const path of [
      dir,
      `${dir}/closed`,
      `${dir}/through`,
      `${dir}/sub/up`,
      '/root',
      '/tmp',
      '/proc/1/cwd',
    ]) {
      const answer = await resolveCwd(path, { runAs }).then(
        () => true,
        () => false,
      );
      expect({ path, answer }).toEqual({ path, answer: canEnter(path) });
    }
  });

  it('that a link has taken the place of since is not entered', async () => {
    const cwd = await resolveCwd(`${dir}/sub/deep`);
    rmSync(`${dir}/sub/deep`, { recursive: true });
    symlinkSync('/etc', `${dir}/sub/deep`);
    expect(() => openTerminal(['/bin/pwd'], { cwd })).toThrow(
      expect.objectContaining({ reason: 'CWD_INVALID' }),
    );
    expect(() => openTerminal(['/bin/pwd'], { cwd: `${cwd}/ssl` })).toThrow(
      expect.objectContaining({ reason: 'CWD_INVALID' }),
    );
  });
});

function canEnter(path: string): boolean {
  try {
    const user = `--reuid=${runAs.uid}`;
    execFileSync('setpriv', [user, '--regid=1000', '--clear-groups', 'env', '-C', path, 'true'], {
      stdio: 'ignore',
    });
    return true;
  } catch {
    return false;
  }
}
