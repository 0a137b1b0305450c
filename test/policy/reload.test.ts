import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { PolicySource } from '../../src/app/policySource.js';
import type { Name } from '../../src/core/names.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { Harness, terminals } from '../server/harness.js';
import { eventsOf, kindsOf } from '../server/streams.js';
import { type TemporaryDir, temporaryDir } from '../store/temporaryDir.js';
import { permitAll, request, tooDeep, workerEntry, writePolicies } from './policyDirs.js';

const forbidReads =
  '@id("no-reads") forbid(principal, action == Grantty::Action::"terminal.read", resource);';

let dir: TemporaryDir;
let lines: string[];
let source: PolicySource;

beforeEach(async () => {
  dir = await temporaryDir();
  await writePolicies(dir.path, permitAll);
  lines = [];
  source = await open();
});

afterEach(async () => {
  await dir[Symbol.asyncDispose]();
});

function open(): Promise<PolicySource> {
  const logger = pino({}, { write: (line: string) => lines.push(line) });
  return PolicySource.open({ dir: dir.path, logger, workerEntry });
}

function reads(): boolean {
  return source.policy.decide(request()).permit;
}

describe('a directory of policies', () => {
  it('is refused at the start with every problem it has', async () => {
    await writePolicies(dir.path, `${permitAll}\npermit(principal, action, resource);`);
    await expect(open()).rejects.toThrow('policies.cedar:2:1: the policy needs a name');
    await rm(dir.path, { recursive: true });
    await expect(open()).rejects.toThrow('it does not exist');
  });

  it('is in force as it was at the last reload', async () => {
    const swapped: string[] = [];
    using _watching = source.watch(({ hash }) => swapped.push(hash));
    const { hash } = source.policy;
    expect(reads()).toBe(true);
    await writePolicies(dir.path, permitAll + forbidReads);
    expect(reads()).toBe(true);
    await source.reload();
    expect(reads()).toBe(false);
    expect(swapped).toEqual([source.policy.hash]);
    await writePolicies(dir.path, permitAll);
    await source.reload();
    expect(reads()).toBe(true);
    expect(source.policy.hash).toBe(hash);
  });

  it('keeps the old set when the new one is bad', async () => {
    const swapped: string[] = [];
    using _watching = source.watch(({ hash }) => swapped.push(hash));
    const { hash } = source.policy;
    for (const bad of [
      '@id("k") forbid(principal, action == Grantty::Action::"terminal.kil", resource);',
      tooDeep,
      '',
    ]) {
      await writePolicies(dir.path, bad);
      await expect(source.reload()).rejects.toThrow(dir.path);
      expect(source.policy.hash).toBe(hash);
      expect(reads()).toBe(true);
    }
    expect(swapped).toEqual([]);
    await writePolicies(dir.path, permitAll + forbidReads);
    await source.reload();
    expect(reads()).toBe(false);
  });
});

describe('looking at a directory of policies', () => {
  it('takes what has changed once it is seen twice alike', async () => {
    await writePolicies(dir.path, permitAll + forbidReads);
    await source.look();
    expect(reads()).toBe(true);
    await writeFile(join(dir.path, 'more.cedar'), '@id("m") permit(principal, action, resource);');
    await source.look();
    expect(reads()).toBe(true);
    await source.look();
    expect(reads()).toBe(false);
    expect(source.set.policies.map(({ id }) => id)).toEqual(['all', 'm', 'no-reads']);
  });

  it('tries a bad set once, says so in the log, and keeps the old one', async () => {
    await writePolicies(dir.path, tooDeep);
    for (let looks = 0; looks < 4; looks += 1) await source.look();
    expect(lines.filter((line) => line.includes('policies not loaded'))).toHaveLength(1);
    expect(lines.join('')).toContain('policies.cedar: cannot be parsed');
    expect(reads()).toBe(true);
  });

  it('keeps the old set while the directory is away, and says so once', async () => {
    await rename(dir.path, `${dir.path}.away`);
    for (let looks = 0; looks < 3; looks += 1) await source.look();
    expect(lines.filter((line) => line.includes('cannot be read'))).toHaveLength(1);
    expect(reads()).toBe(true);
    await rename(`${dir.path}.away`, dir.path);
    await writePolicies(dir.path, permitAll + forbidReads);
    await source.look();
    await source.look();
    expect(reads()).toBe(false);
  });
});

describe('new policies', () => {
  it('end the streams that they forbid and leave the others', async () => {
    await using harness = await Harness.start();
    harness.policy = source.policy;
    using _watching = source.watch(() => harness.server.recheck());
    const open = async (id: string) => {
      const terminal = await harness.supervisor.add({ id: id as Name });
      const ref = { owner: '1000', id };
      const stream = harness.serverStream(
        terminals.watch,
        { terminal: ref },
        await harness.token(),
      );
      expect((await stream.next())?.event.case).toBe('started');
      return { terminal, stream };
    };
    const forbidden = await open('secret');
    const kept = await open('plain');
    await writePolicies(
      dir.path,
      `${permitAll} @id("secret") forbid(principal, action, resource) when { resource.terminal == "secret" };`,
    );
    await source.reload();
    const rest = await forbidden.stream.rest();
    expect(eventsOf(rest, 'closing')[0]?.reason).toBe(ClosingReason.POLICY_DENIED);
    expect(harness.intents.find(({ decision }) => decision === 'deny')).toMatchObject({
      reason: 'POLICY_DENIED',
      policy: { hash: source.policy.hash, ids: ['secret'] },
    });
    await kept.terminal.print('still here');
    await kept.terminal.exit();
    expect(kindsOf(await kept.stream.rest())).toEqual(['resized', 'output', 'exited', 'closing']);
  });
});
