/** A removal that fails half way: what its caller finds then, and what the next supervisor does. */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Name } from '../../src/core/names.js';
import { makeResourceDir, scanResources } from '../../src/store/metadata.js';
import { removeResource } from '../../src/store/resourceRemoval.js';
import { onPath, skipAloud } from '../support/skipAloud.js';
import { compileStore, run } from './anotherProcess.js';
import { temporaryDir } from './temporaryDir.js';

const tuple = {
  owner: '1000' as Name,
  agent: 'coder' as Name,
  session: 'default' as Name,
  id: 't' as Name,
};

async function resourceIn(stateDir: string): Promise<string> {
  const dir = await makeResourceDir(stateDir, tuple);
  writeFileSync(join(dir, 'meta.json'), '{}');
  return dir;
}

/** Removes it while no descriptor is left, which the sync of a directory needs, or discards it; then once more. */
const WITHOUT_DESCRIPTORS = `
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { discardResource, removeResource } from './store/resourceRemoval.js';
const [, , dir, discards] = process.argv;
execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=64:']);
const opened = [];
try {
  for (;;) opened.push(openSync('/dev/null'));
} catch {}
const removes = discards ? discardResource : removeResource;
const outcome = await removes(dir).then(() => 'removed', ({ code }) => code);
opened.forEach((fd) => closeSync(fd));
console.log(outcome, existsSync(dir + '/meta.json'));
console.log(await removeResource(dir).then(() => 'removed', ({ code }) => code), existsSync(dir));
`;

describe('a removal', () => {
  it('that cannot be made durable leaves the resource whole in its place, to be removed again', async () => {
    if (!onPath('prlimit')) return skipAloud('needs prlimit(1)');
    await using state = await temporaryDir();
    await using program = await temporaryDir();
    const dir = await resourceIn(state.path);
    await compileStore(program.path);
    await using child = await run(program.path, WITHOUT_DESCRIPTORS, dir);
    expect(await child.nextLine()).toBe('EMFILE true');
    expect(await child.nextLine()).toBe('removed false');
  });

  it('of what was never told to be there takes it from its place even then', async () => {
    if (!onPath('prlimit')) return skipAloud('needs prlimit(1)');
    await using state = await temporaryDir();
    await using program = await temporaryDir();
    const dir = await resourceIn(state.path);
    await compileStore(program.path);
    await using child = await run(program.path, WITHOUT_DESCRIPTORS, dir, 'discards');
    expect(await child.nextLine()).toBe('removed false');
    expect(await makeResourceDir(state.path, tuple)).toBe(dir);
  });

  it('whose files do not all go is done all the same, and the next supervisor tries again', async () => {
    if (process.getuid?.() !== 0 || !onPath('mount')) return skipAloud('needs root and mount(8)');
    await using state = await temporaryDir();
    const dir = await resourceIn(state.path);
    const terminals = dirname(dir);
    mkdirSync(join(dir, 'busy'));
    const mount = promisify(execFile);
    try {
      await mount('mount', ['-t', 'tmpfs', 'tmpfs', join(dir, 'busy')]);
    } catch {
      return skipAloud('this machine does not let us mount');
    }
    const warnings: object[] = [];
    const log = { warn: (fields: object) => warnings.push(fields) };
    await removeResource(dir, log);
    const [left = ''] = readdirSync(terminals);
    const path = join(terminals, left);
    try {
      expect(left).toMatch(/^\.removed-t-/);
      const scan = async () => {
        const ids: string[] = [];
        for await (const one of scanResources(state.path, { log, clear: true })) {
          ids.push(one.tuple.id);
        }
        return ids;
      };
      expect(await scan()).toEqual([]);
      expect(warnings).toMatchObject([{ path }, { path }, { path }]);
      await mount('umount', [join(path, 'busy')]);
      expect(await scan()).toEqual([]);
      expect(readdirSync(terminals)).toEqual([]);
    } finally {
      await mount('umount', ['-l', join(path, 'busy')]).catch(() => {});
    }
  });
});
