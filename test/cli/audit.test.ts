/** `ctx audit` as auditors run it: the built program on a trail, without a server. */
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PACKAGED_POLICY_DIR, readPolicySources } from '../../src/auth/cedarFiles.js';
import { makePolicySet } from '../../src/auth/cedarSet.js';
import {
  intentOf,
  NOON,
  principalOf,
  strangerOf,
  type TestTrail,
  testTrail,
} from '../audit/trails.js';

const MAIN = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const DAY = '2025-01-01.jsonl';
const AT = '2025-01-01T12:01:00Z';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

let made: TestTrail;
let day: string;

function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, 'audit', ...args], { env }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

const ctx = (...args: readonly string[]) => run([...args, '--audit-dir', made.dir]);

const json = async (...args: readonly string[]) =>
  JSON.parse((await ctx(...args, '--json')).stdout);

beforeAll(async () => {
  made = await testTrail();
  const trail = await made.open();
  const { schema, files } = await readPolicySources(PACKAGED_POLICY_DIR);
  const permits = {
    id: 'permit-all',
    effect: 'permit',
    text: '@id("permit-all")\npermit(principal, action, resource);',
  } as const;
  const forbids = {
    id: 'no-writes',
    effect: 'forbid',
    text: '@id("no-writes")\nforbid(principal, action == Grantty::Action::"terminal.write", resource);',
  } as const;
  expect(files.length).toBeGreaterThan(0);
  for (const [minute, policies] of [
    [0, [permits]],
    [5, [permits, forbids]],
  ] as const) {
    const { hash, canonical } = makePolicySet(schema, policies);
    await trail.change({ change: 'policy', timeMs: NOON + minute * 60_000, hash, text: canonical });
  }
  await trail.intent(intentOf({ decisionId: 'd1' }));
  trail.outcome({ decisionId: 'd1', timeMs: NOON, status: 'OK' });
  const parent = { issuer: 'https://issuer.test', jti: 'token-1' };
  await trail.intent(
    intentOf({
      principal: principalOf('child', undefined, { actors: ['helper'], lineage: [parent] }),
    }),
  );
  for (const decisionId of ['stranger', 'second', 'third']) {
    const rpc = 'grantty.v1.TerminalService/Kill';
    await trail.intent(strangerOf({ decisionId, rpc, peer: { address: '10.0.0.9' } }));
  }
  await trail[Symbol.asyncDispose]();
  day = await readFile(join(made.dir, DAY), 'utf8');
});

afterAll(async () => {
  await made[Symbol.asyncDispose]();
});

describe('ctx audit verify', () => {
  it('exits with 0 for a sound trail', async () => {
    const { code, stdout } = await ctx('verify');
    expect({ code, says: stdout.split('\n')[0] }).toEqual({
      code: 0,
      says: 'trail           sound',
    });
    expect(stdout).toContain(`\ndirectory       ${made.dir}\n`);
    expect(JSON.parse((await ctx('verify', '--json')).stdout).dir).toBe(made.dir);
  });

  it('exits with 1 and names the first bad record', async () => {
    await writeFile(join(made.dir, DAY), day.replace('"allow"', '"ALLOW"'));
    const line = day.slice(0, day.indexOf('"allow"')).split('\n').length;
    const { code, stdout } = await ctx('verify', '--json');
    await writeFile(join(made.dir, DAY), day);
    expect({ code, verdict: JSON.parse(stdout) }).toMatchObject({
      code: 1,
      verdict: { state: 'tampered', firstBad: { file: DAY, line, seq: line } },
    });
  });

  it('exits with 1 where a head kept elsewhere is not in it', async () => {
    await using other = await testTrail();
    await (await other.open())[Symbol.asyncDispose]();
    const { code, stdout } = await ctx('verify', '--head', join(other.dir, 'HEAD'));
    expect({ code, stdout }).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('signed by another key'),
    });
  });

  it('exits with 0 for a head kept elsewhere that is', async () => {
    const head = await readFile(join(made.dir, 'HEAD'), 'utf8');
    expect((await ctx('verify', '--head', head)).code).toBe(0);
  });

  it('exits with 2 where there is nothing, and for a head or key that cannot be read', async () => {
    expect((await ctx('verify', '--head', '/nowhere')).code).toBe(2);
    expect((await ctx('verify', '--key', '/nowhere')).code).toBe(2);
    await using empty = await testTrail();
    expect(await run(['verify', '--audit-dir', empty.dir])).toMatchObject({
      code: 2,
      stdout: expect.stringContaining('incomplete'),
      stderr: expect.stringContaining(
        `no audit trail in ${empty.dir}: say where it is by --config`,
      ),
    });
  });
});

describe('ctx audit', () => {
  it('who-could decides anew under the policies of that time', async () => {
    const could = async (time: string, action = 'terminal.write') => {
      const answer = await json('who-could', action, 't1', '--at', time);
      return [answer.could, answer.prevented].map((list: { jti: string }[]) =>
        list.map(({ jti }) => jti).sort(),
      );
    };
    expect(await could(AT)).toEqual([['child', 'token-1'], []]);
    expect(await could('2025-01-01T12:06:00Z')).toEqual([[], ['child', 'token-1']]);
    expect(await could('2025-01-01T12:06:00Z', 'terminal.read')).toEqual([
      ['child', 'token-1'],
      [],
    ]);
    expect(await could('2025-01-01T14:00:00Z')).toEqual([[], []]);
    const { stdout } = await ctx('who-could', 'terminal.write', 't1', '--at', AT);
    expect(stdout).toContain('permit-all');
  });

  it('answers nothing where there is no trail, and names the place', async () => {
    await using empty = await testTrail();
    expect(await run(['unused', '--audit-dir', empty.dir])).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`no audit trail in ${empty.dir}`),
    });
  });

  it('did names who acted, finds what an actor did, and takes no address for a subject', async () => {
    const { stdout: all } = await ctx('did');
    expect(all).toContain('  allow  alice acted by helper  Write  ');
    expect(all).toContain('  deny  (unauthenticated, from 10.0.0.9)  Kill  ');
    expect(all).toContain('2 more like stranger');
    const { stdout: helpers } = await ctx('did', '--actor', 'helper');
    expect(helpers.trimEnd().split('\n')).toHaveLength(1);
    expect(helpers).toContain('alice acted by helper');
    expect(await ctx('did', '--actor', 'nobody')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: `ctx: nothing in ${made.dir} answers that\n`,
    });
    const { stdout: reasons } = await ctx('why', 'stranger');
    expect(reasons).toMatch(/alike +2 more until .*, told the same decision id/);
  });

  it('did, why, tree and unused answer for people and for programs', async () => {
    const { stdout: deeds } = await ctx('did', '--terminal', 't1', '--json');
    expect(
      deeds
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      { intent: { decision_id: 'd1' }, outcome: { status: 'OK' } },
      { intent: { actors: ['helper'] } },
    ]);
    expect((await ctx('did', '--to', AT)).stdout).toContain('allow  alice  Write  1000/t1  d1  OK');
    expect(await json('why', 'd1')).toMatchObject({ intent: { grant: 'g1' }, grants: { g1: {} } });
    expect((await ctx('why', 'd1')).stdout).toContain('granted by');
    expect((await ctx('why', 'd9')).code).toBe(1);
    expect(await json('tree')).toMatchObject([{ jti: 'token-1', children: [{ jti: 'child' }] }]);
    expect((await ctx('tree')).stdout).toContain('\n  child  alice  acted by helper');
    expect(await json('unused')).toMatchObject([{ grant: 'g1', unused: ['terminal.read'] }]);
    expect((await ctx('unused')).stdout).toContain('terminal.read');
  });

  it('says on standard error when the trail is not as it was written', async () => {
    await writeFile(join(made.dir, DAY), day.replace('"allow"', '"ALLOW"'));
    const { stderr } = await ctx('unused');
    await writeFile(join(made.dir, DAY), day);
    expect(stderr).toContain('tampered');
  });
});
