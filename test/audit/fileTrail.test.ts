/** Records get to the disk as safely as what they allow demands. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { FileTrail } from '../../src/audit/fileTrail.js';
import type { IntentRecord } from '../../src/audit/record.js';
import { verifyTrail } from '../../src/audit/verify.js';
import { noSpace, type Seam, seam } from './fakeFile.js';
import {
  grantOf,
  intentOf,
  NOON,
  principalOf,
  strangerOf,
  type TestTrail,
  testTrail,
} from './trails.js';

const DAY = '2025-01-01.jsonl';
const DAY_MS = 86_400_000;

interface Line {
  readonly record: string;
  readonly [member: string]: unknown;
}

async function linesOf(dir: string, file = DAY): Promise<Line[]> {
  const text = await readFile(join(dir, file), 'utf8');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
}

const kindsOf = (lines: readonly Line[]) => lines.map(({ record }) => record);

async function seal(trail: FileTrail): Promise<void> {
  await trail[Symbol.asyncDispose]();
}

/** Waits for what happens off the test's own turn. */
async function until(holds: () => boolean): Promise<void> {
  const end = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > end) throw new Error('it did not come about');
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Rejected with that reason. */
const unavailable = expect.objectContaining({ reason: 'AUDIT_UNAVAILABLE' });

const durable: readonly [string, Partial<IntentRecord>][] = [
  ['create', { rpc: 'grantty.v1.TerminalService/CreateTerminal', action: 'terminal.create' }],
  ['start', { rpc: 'grantty.v1.TerminalService/StartTerminal', action: 'terminal.create' }],
  ['delete', { rpc: 'grantty.v1.TerminalService/DeleteTerminal', action: 'terminal.create' }],
  ['signal', { rpc: 'grantty.v1.TerminalService/Signal', action: 'terminal.signal' }],
  ['stop', { rpc: 'grantty.v1.TerminalService/Stop', action: 'terminal.stop' }],
  ['kill', { rpc: 'grantty.v1.TerminalService/Kill', action: 'terminal.kill' }],
];

const withoutAction: readonly [string, string][] = [
  ['delegate', 'grantty.v1.GrantService/Delegate'],
  ['revoke', 'grantty.v1.GrantService/Revoke'],
];

function callOf(rpc: string): IntentRecord {
  const { action: _, ...record } = intentOf({ rpc });
  return record;
}

describe('before an effect', () => {
  it.each([
    ...durable.map(([name, more]) => [name, () => intentOf(more)] as const),
    ...withoutAction.map(([name, rpc]) => [name, () => callOf(rpc)] as const),
  ])('%s is written and synced', async (_, record) => {
    await using at = await testTrail();
    const files = seam();
    const trail = await at.open({ openFile: files.open });
    files.order.length = 0;
    await trail.intent(record()).then(() => files.order.push('effect'));
    expect(files.order).toEqual(['append', 'sync', 'effect']);
    await seal(trail);
  });

  it.each([
    ['reading', { action: 'terminal.read' }],
    ['input', { action: 'terminal.write' }],
    ['a resize', { action: 'terminal.resize' }],
    ['a refused kill', { action: 'terminal.kill', decision: 'deny', reason: 'GRANT_MISSING' }],
  ] as const)('%s is written, and no disk is waited for', async (_, more) => {
    await using at = await testTrail();
    const files = seam();
    const trail = await at.open({ openFile: files.open });
    files.order.length = 0;
    await trail.intent(intentOf(more)).then(() => files.order.push('effect'));
    expect(files.order).toEqual(['append', 'effect']);
    await seal(trail);
  });

  it('callers of the same time share one write and one sync', async () => {
    await using at = await testTrail();
    const files = seam();
    const trail = await at.open({ openFile: files.open });
    files.appends = 0;
    files.syncs = 0;
    const kills = Array.from({ length: 64 }, () =>
      trail.intent(intentOf({ action: 'terminal.kill' })),
    );
    await Promise.all(kills);
    expect({ appends: files.appends, syncs: files.syncs }).toEqual({ appends: 1, syncs: 1 });
    await seal(trail);
  });

  it('an outcome shares the write of the next decision, and needs none to be written', async () => {
    await using at = await testTrail();
    const files = seam();
    const trail = await at.open({ openFile: files.open });
    files.appends = 0;
    trail.outcome({ decisionId: 'before', timeMs: NOON, status: 'OK' });
    await trail.intent(intentOf({ action: 'terminal.read' }));
    expect(files.appends).toBe(1);
    trail.outcome({ decisionId: 'alone', timeMs: NOON, status: 'OK' });
    while (files.appends < 2) await new Promise(setImmediate);
    await seal(trail);
    const outcomes = (await linesOf(at.dir)).filter(({ record }) => record === 'outcome');
    expect(outcomes.map((line) => line.decision_id)).toEqual(['before', 'alone']);
  });

  it('what comes while a sync runs is written meanwhile, and waits for one of its own', async () => {
    await using at = await testTrail();
    const files = seam();
    const trail = await at.open({ openFile: files.open });
    files.order.length = 0;
    let open: () => void = () => {};
    files.gate = new Promise((resolve) => {
      open = resolve;
    });
    const first = trail
      .intent(intentOf({ action: 'terminal.kill' }))
      .then(() => files.order.push('first'));
    await trail.intent(intentOf({ action: 'terminal.read' })).then(() => files.order.push('read'));
    const second = trail
      .intent(intentOf({ action: 'terminal.stop' }))
      .then(() => files.order.push('second'));
    await trail.intent(intentOf({ action: 'terminal.read' }));
    files.gate = undefined;
    open();
    await Promise.all([first, second]);
    const from = files.order.indexOf('sync');
    expect(files.order.slice(0, from)).toContain('read');
    expect(files.order.slice(from)).toEqual(['sync', 'first', 'sync', 'second']);
    await seal(trail);
  });

  it('a disk that fails to sync refuses the effect, and goes on when it can', async () => {
    await using at = await testTrail();
    const files = seam();
    const trail = await at.open({ openFile: files.open });
    files.broken = Object.assign(new Error('input/output error'), { code: 'EIO' });
    await expect(trail.intent(intentOf({ action: 'terminal.create' }))).rejects.toEqual(
      unavailable,
    );
    files.broken = undefined;
    await trail.intent(intentOf({ action: 'terminal.create' }));
    await seal(trail);
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });
});

describe('checkpoints', () => {
  it('come after a minute in which something happened, into file, HEAD and log', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    await trail.intent(intentOf());
    at.clock.advance(60_000);
    // The queue is in order: when this is durable, so is the checkpoint before it.
    await trail.intent(intentOf({ action: 'terminal.kill' }));
    await seal(trail);
    const heads = at.logged.flatMap(({ fields }) => (fields.head ? [fields.head] : []));
    const lines = (await readFile(join(at.dir, DAY), 'utf8')).split('\n');
    // At the start, after the minute, at the end.
    expect(lines.filter((line) => line.includes('"record":"checkpoint"'))).toEqual(heads);
    expect(heads).toHaveLength(3);
    expect(await readFile(join(at.dir, 'HEAD'), 'utf8')).toBe(`${heads[2]}\n`);
  });

  it('do not come while nothing happens', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    const checkpoints = () => at.logged.filter(({ message }) => message === 'audit checkpoint');
    at.clock.advance(600_000);
    await trail.intent(intentOf({ action: 'terminal.kill' }));
    expect(checkpoints()).toHaveLength(1);
    at.clock.advance(60_000);
    await until(() => checkpoints().length === 2);
    await seal(trail);
  });

  it('come after a thousand records', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    for (let round = 0; round < 10; round += 1) {
      await Promise.all(Array.from({ length: 100 }, () => trail.intent(intentOf())));
    }
    await trail.intent(intentOf({ action: 'terminal.kill' }));
    await trail.intent(intentOf({ action: 'terminal.kill' }));
    expect(kindsOf(await linesOf(at.dir)).filter((kind) => kind === 'checkpoint')).toHaveLength(2);
    await seal(trail);
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });

  it('are signed with a key that nobody else can read, and have its public half beside them', async () => {
    await using at = await testTrail();
    await seal(await at.open());
    expect((await stat(join(at.dir, 'checkpoint.key'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(at.dir, 'checkpoint.pub'), 'utf8')).toContain('BEGIN PUBLIC KEY');
  });
});

describe('from one server to the next', () => {
  it('a start names where the last one ended, and that it was sealed', async () => {
    await using at = await testTrail();
    const first = await at.open();
    await first.intent(intentOf());
    await seal(first);
    const sealed = await linesOf(at.dir);
    await seal(await at.open());
    const lines = await linesOf(at.dir);
    const start = lines[sealed.length];
    expect(start).toMatchObject({
      record: 'start',
      version: 'test',
      isolation: 'shared-uid',
      after: { file: DAY, seq: sealed.length, hash: start?.prev, sealed: true },
    });
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });

  it('a server that was killed leaves an unsealed end, and the next one vouches for it', async () => {
    await using at = await testTrail();
    const killed = await at.open();
    await killed.intent(intentOf());
    const next = await at.open();
    await seal(next);
    const start = (await linesOf(at.dir)).find(({ record, after }) => {
      return record === 'start' && (after as { seq: number }).seq > 0;
    });
    expect(start).toMatchObject({ after: { sealed: false } });
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });

  it('takes nothing any more once it is sealed', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    await seal(trail);
    await expect(trail.intent(intentOf())).rejects.toEqual(unavailable);
    trail.outcome({ decisionId: 'late', timeMs: NOON, status: 'OK' });
    expect(kindsOf(await linesOf(at.dir)).at(-1)).toBe('checkpoint');
  });
});

describe('midnight', () => {
  it('begins a file that stands alone: who writes it, the policies, tokens and grants anew', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    await trail.change({ change: 'policy', timeMs: NOON, hash: 'h1', text: 'permit all' });
    await trail.intent(intentOf());
    at.clock.advance(DAY_MS / 2);
    await trail.intent(intentOf());
    await seal(trail);
    const [before, after] = [await linesOf(at.dir), await linesOf(at.dir, '2025-01-02.jsonl')];
    expect(kindsOf(before).at(-1)).toBe('checkpoint');
    const kinds = kindsOf(after).filter((kind) => kind !== 'checkpoint');
    expect(kinds).toEqual(['file', 'policy', 'grant', 'token', 'intent']);
    expect(after[0]).toMatchObject({ seq: before.length + 1, after: { file: DAY } });
    expect(after[1]).toMatchObject({ text: 'permit all', restated: true });
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });

  it('does not go back with a clock that steps back', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    at.clock.advance(DAY_MS);
    await trail.intent(intentOf());
    at.clock.advance(-DAY_MS);
    await trail.intent(intentOf());
    await seal(trail);
    await seal(await at.open());
    expect((await readdir(at.dir)).filter((name) => name.endsWith('.jsonl'))).toEqual([
      DAY,
      '2025-01-02.jsonl',
    ]);
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });
});

describe('tokens and grants', () => {
  it('are on record before the first decision that names them, and once', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    const grants = [grantOf({ id: 'a' }), grantOf({ id: 'b', actions: ['terminal.kill'] })];
    const first = principalOf('t1', grants);
    const renewed = principalOf('t2', grants);
    await trail.intent(intentOf({ principal: first, grantId: 'a' }));
    await trail.intent(intentOf({ principal: first, grantId: 'b' }));
    await trail.intent(intentOf({ principal: renewed, grantId: 'a' }));
    await seal(trail);
    const lines = await linesOf(at.dir);
    expect(kindsOf(lines.slice(3, -1))).toEqual([
      'grant',
      'grant',
      'token',
      'intent',
      'intent',
      'token',
      'intent',
    ]);
    const [a, b] = lines.filter(({ record }) => record === 'grant');
    const intents = lines.filter(({ record }) => record === 'intent');
    expect(intents.map(({ grant_hash }) => grant_hash)).toEqual([a?.hash, b?.hash, a?.hash]);
  });
});

describe('floods of denials', () => {
  it('of strangers are one record and one count for each address, method and reason, found by one id', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    const first = strangerOf({ peer: { address: '10.0.0.1' } });
    expect(await trail.intent(first)).toBe(first.decisionId);
    for (let count = 0; count < 999; count += 1) {
      const told = await trail.intent(strangerOf({ peer: { address: '10.0.0.1' } }));
      expect(told).toBe(first.decisionId);
    }
    await trail.intent(strangerOf({ peer: { address: '10.0.0.2' } }));
    await trail.intent(strangerOf({ peer: first.peer, rpc: 'grantty.v1.TerminalService/Kill' }));
    at.clock.advance(10_000);
    await seal(trail);
    const lines = (await linesOf(at.dir)).slice(3, -1);
    expect(kindsOf(lines)).toEqual(['intent', 'intent', 'intent', 'counted']);
    expect(lines[3]).toMatchObject({
      of: 'stranger',
      like: first.decisionId,
      peer: { address: '10.0.0.1' },
      reason: 'TOKEN_INVALID',
      count: 999,
    });
  });

  it('from a hundred thousand addresses cost a bounded number of records', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    const total = 100_000;
    const told = new Set<string>();
    const template = strangerOf();
    for (let count = 0; count < total; count += 1) {
      const peer = { address: `2001:db8::${count.toString(16)}` };
      const written = trail.intent({ ...template, decisionId: `d${count}`, peer });
      if (count < 2_000) told.add(await written);
    }
    at.clock.advance(10_000);
    await seal(trail);
    const lines = await linesOf(at.dir);
    expect(lines.length).toBeLessThan(1_100);
    const alone = lines.filter(({ record }) => record === 'intent').length;
    const counted = lines.filter(({ record }) => record === 'counted');
    expect(alone + counted.reduce((sum, { count }) => sum + Number(count), 0)).toBe(total);
    // Whoever is told an id can ask about it.
    for (const id of told) {
      expect(lines.some(({ decision_id }) => decision_id === id)).toBe(true);
    }
  });

  it('of input frames are counted by stream and second, with their bytes', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    const refused = () =>
      trail.intent(
        intentOf({ decision: 'deny', reason: 'GRANT_MISSING', frame: 'input', inputBytes: 10 }),
      );
    for (let second = 0; second < 2; second += 1) {
      for (let count = 0; count < 50; count += 1) await refused();
      at.clock.advance(1_000);
    }
    await seal(trail);
    const lines = (await linesOf(at.dir)).filter(
      ({ frame, record }) => frame || record === 'counted',
    );
    expect(kindsOf(lines).sort()).toEqual(['counted', 'counted', 'intent', 'intent']);
    expect(lines.filter(({ record }) => record === 'counted')).toMatchObject([
      { of: 'input', count: 49, input_bytes: 490 },
      { of: 'input', count: 49, input_bytes: 490 },
    ]);
  });

  it('of another kind are each on record', async () => {
    await using at = await testTrail();
    const trail = await at.open();
    for (let count = 0; count < 10; count += 1) {
      await trail.intent(intentOf({ decision: 'deny', reason: 'GRANT_MISSING' }));
    }
    await seal(trail);
    const intents = kindsOf(await linesOf(at.dir)).filter((kind) => kind === 'intent');
    expect(intents).toHaveLength(10);
  });
});

describe('the field filter', () => {
  it('keeps the fields out of every kind of record', async () => {
    await using at = await testTrail();
    const trail = await at.open({
      omit: ['peer.address', 'principal.client_id', 'actors', 'grant.constraints.commands'],
    });
    const secret = 'CANARY';
    const grant = grantOf({
      constraints: { commands: [['/bin/sh', secret]], env_allow: ['LANG'] },
    });
    const principal = { ...principalOf('t1', [grant], { clientId: secret, actors: [secret] }) };
    await trail.intent(intentOf({ principal, peer: { address: secret } }));
    for (let count = 0; count < 3; count += 1) {
      await trail.intent(strangerOf({ peer: { address: secret } }));
    }
    await seal(trail);
    const text = await readFile(join(at.dir, DAY), 'utf8');
    expect(text).not.toContain(secret);
    expect(text).toContain('"env_allow":["LANG"]');
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });
});

describe('a full disk', () => {
  const kill = () => intentOf({ action: 'terminal.kill' });

  async function onFullDisk(
    run: (trail: FileTrail, files: Seam, at: TestTrail) => Promise<void>,
  ): Promise<Line[]> {
    await using at = await testTrail();
    const files = seam();
    const trail = await at.open({ openFile: files.open });
    await trail.intent(intentOf());
    files.full = noSpace();
    await run(trail, files, at);
    await seal(trail);
    expect(await verifyTrail(at.dir)).toMatchObject({ state: 'sound' });
    return linesOf(at.dir);
  }

  it('refuses all but stop, kill and revoke, which are kept in the reserve', async () => {
    await onFullDisk(async (trail, files, at) => {
      await expect(trail.intent(intentOf())).rejects.toEqual(unavailable);
      await expect(trail.intent(intentOf({ action: 'terminal.create' }))).rejects.toEqual(
        unavailable,
      );
      await expect(trail.intent(callOf('grantty.v1.GrantService/Delegate'))).rejects.toEqual(
        unavailable,
      );
      await trail.intent(kill());
      await trail.intent(intentOf({ action: 'terminal.stop' }));
      await trail.intent(callOf('grantty.v1.GrantService/Revoke'));
      await trail.change({
        change: 'revoked',
        timeMs: NOON,
        what: { kind: 'token', issuer: 'i', jti: 'j' },
      });
      const before = await verifyTrail(at.dir);
      // The file and then the reserve are one chain at any time.
      expect(before).toMatchObject({ state: 'sound', firstSeq: 1 });
      expect(before.notes.join()).toContain('chained, not yet signed');
      expect(before.records).toBeGreaterThan(8);
      files.full = undefined;
      at.clock.advance(1_000);
    });
  });

  it('goes on where it stopped when there is room again, and says what is missing', async () => {
    const lines = await onFullDisk(async (trail, files, at) => {
      const killed = kill();
      await trail.intent(killed);
      trail.outcome({ decisionId: killed.decisionId, timeMs: NOON, status: 'OK' });
      trail.outcome({ decisionId: 'a read', timeMs: NOON, status: 'OK' });
      trail.outcome({ decisionId: 'a write', timeMs: NOON, status: 'OK' });
      await expect(trail.intent(intentOf())).rejects.toEqual(unavailable);
      files.full = undefined;
      at.clock.advance(1_000);
      await trail.intent(intentOf());
      trail.outcome({ decisionId: 'later', timeMs: NOON, status: 'OK' });
    });
    const shown = lines
      .filter(({ record }) => ['intent', 'outcome', 'lost'].includes(record))
      .map(({ record, action, count }) => [record, action ?? count].filter(Boolean).join(' '));
    expect(shown).toEqual([
      'intent terminal.write',
      'intent terminal.kill',
      'outcome',
      'intent terminal.write',
      'outcome',
      'lost 2',
    ]);
  });

  it('is not tried again at once, however many ask', async () => {
    await onFullDisk(async (trail, files, at) => {
      await trail.intent(kill());
      files.full = undefined;
      await expect(trail.intent(intentOf())).resolves.toEqual(expect.any(String));
      files.full = noSpace();
      await trail.intent(kill());
      await expect(trail.intent(intentOf())).rejects.toEqual(unavailable);
      files.full = undefined;
      await expect(trail.intent(intentOf())).rejects.toEqual(unavailable);
      at.clock.advance(1_000);
      await trail.intent(intentOf());
    });
  });

  it('refuses stop and kill too once the reserve is used up, and never half of one', async () => {
    const lines = await onFullDisk(async (trail, files, at) => {
      let kept = 0;
      const all = (async () => {
        for (;;) {
          await trail.intent(kill());
          kept += 1;
        }
      })();
      await expect(all).rejects.toEqual(unavailable);
      expect(kept).toBeGreaterThan(50);
      files.full = undefined;
      at.clock.advance(1_000);
      await trail.intent(intentOf({ decisionId: `after ${kept}` }));
    });
    const kept = lines.filter(({ action }) => action === 'terminal.kill').length;
    expect(lines.map(({ decision_id: id }) => id)).toContain(`after ${kept}`);
  });

  it('survives the end of the server: the next one finds what is in the reserve', async () => {
    await using at = await testTrail();
    const files = seam();
    const killed = await at.open({ openFile: files.open });
    files.full = noSpace();
    await killed.intent(kill());
    await killed.intent(kill());
    const still = await at.open({ openFile: files.open });
    await still.intent(kill());
    await expect(still.intent(intentOf())).rejects.toEqual(unavailable);
    files.full = undefined;
    const next = await at.open({ openFile: files.open });
    await next.intent(intentOf());
    await seal(next);
    const lines = await linesOf(at.dir);
    expect(lines.filter(({ action }) => action === 'terminal.kill')).toHaveLength(3);
    expect(lines.filter(({ record }) => record === 'start')).toHaveLength(3);
    expect((await verifyTrail(at.dir)).state).toBe('sound');
  });

  it('owes policies that came into force meanwhile', async () => {
    const lines = await onFullDisk(async (trail, files, at) => {
      const change = trail.change({ change: 'policy', timeMs: NOON, hash: 'h2', text: 'forbid' });
      await expect(change).rejects.toEqual(unavailable);
      files.full = undefined;
      at.clock.advance(60_000);
      await trail.intent(intentOf());
    });
    expect(lines).toContainEqual(expect.objectContaining({ record: 'policy', hash: 'h2' }));
  });
});
