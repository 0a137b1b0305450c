import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { jest } from '@jest/globals';
import { program } from '../../src/cli/program.js';

let dir: string;
let file: string;
let printed = '';
const { XDG_CONFIG_HOME } = process.env;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'grantty-contexts-'));
  file = join(dir, 'grantty', 'config.yaml');
  process.env.XDG_CONFIG_HOME = dir;
  printed = '';
  const take = (text: unknown) => {
    printed += text;
    return true;
  };
  jest.spyOn(process.stdout, 'write').mockImplementation(take);
  jest.spyOn(process.stderr, 'write').mockImplementation(take);
});

afterEach(async () => {
  jest.restoreAllMocks();
  if (XDG_CONFIG_HOME === undefined) delete process.env.XDG_CONFIG_HOME;
  else process.env.XDG_CONFIG_HOME = XDG_CONFIG_HOME;
  await rm(dir, { recursive: true });
});

async function context(...args: string[]): Promise<string> {
  printed = '';
  await program().parseAsync(['node', 'ctx', 'context', ...args]);
  return printed;
}

describe('contexts', () => {
  it('are made by set, the first as the current one, in a file for nobody else', async () => {
    await context('set', 'dev', '--address', 'd:1', '--token-file', 'token', '--owner', '7');
    await context('set', 'prod', '--address', 'p:1');
    expect(await context('list')).toBe(
      ['   NAME  ADDRESS  OWNER', '*  dev   d:1      7', '   prod  p:1      -', ''].join('\n'),
    );
    expect(await readFile(file, 'utf8')).toContain(`token_file: ${resolve('token')}\n`);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(dir, 'grantty'))).toEqual(['config.yaml']);
  });

  it('change by set setting by setting', async () => {
    await context('set', 'dev', '--address', 'd:1', '--owner', '7');
    await context('set', 'dev', '--address', 'd:2');
    expect(JSON.parse(await context('show', 'dev', '--json'))).toEqual({
      name: 'dev',
      address: 'd:2',
      owner: '7',
    });
  });

  it('are chosen by use, and comments of the file stay', async () => {
    await mkdir(join(dir, 'grantty'));
    await writeFile(file, '# mine\ncurrent: a\ncontexts:\n  a: {address: "a:1"} # old\n  b: {}\n');
    await context('use', 'b');
    expect(await readFile(file, 'utf8')).toBe(
      '# mine\ncurrent: b\ncontexts:\n  a: { address: "a:1" } # old\n  b: {}\n',
    );
    expect(await context('show')).toBe('name  b\n');
  });

  it('show no token', async () => {
    await context('set', 'dev', '--token', 'very-secret');
    for (const args of [['show'], ['show', '--json'], ['list', '--json']]) {
      expect(await context(...args)).not.toContain('very-secret');
    }
  });

  it('are none without a file, which list says and show refuses', async () => {
    expect(await context('list')).toContain('ctx context set');
    await expect(context('show')).rejects.toThrow('no context is current');
    await expect(context('use', 'x')).rejects.toThrow('there is no context "x"');
    await expect(context('set', 'x')).rejects.toThrow('nothing is to be set');
    expect(await readdir(dir)).toEqual([]);
  });

  it('are not written into a file that is not sound', async () => {
    await mkdir(join(dir, 'grantty'));
    await writeFile(file, 'contexts: {a: {adress: x}}\n');
    await expect(context('set', 'a', '--address', 'x:1')).rejects.toThrow('contexts.a.adress');
    expect(await readFile(file, 'utf8')).toBe('contexts: {a: {adress: x}}\n');
  });
});
