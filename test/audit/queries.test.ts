/** Questions to the trail: who could, who did, why, who handed on to whom, and what nobody used. */
import { describe, expect, it } from '@jest/globals';
import { type Deed, type DidQuestion, did } from '../../src/audit/did.js';
import type { FileTrail } from '../../src/audit/fileTrail.js';
import { lineageTree } from '../../src/audit/lineageTree.js';
import { unused } from '../../src/audit/unused.js';
import { type ArchivedPolicy, type WhoCouldQuestion, whoCould } from '../../src/audit/whoCould.js';
import { why } from '../../src/audit/why.js';
import type { Capability } from '../../src/core/capability.js';
import {
  grantOf,
  intentOf,
  NOON,
  principalOf,
  strangerOf,
  type TestTrail,
  testTrail,
} from './trails.js';

const MINUTE = 60_000;
const at = (minute: number) => NOON + minute * MINUTE;
const seconds = (minute: number) => at(minute) / 1000;
const ISSUER = 'https://issuer.test';

async function trailOf(write: (trail: FileTrail, made: TestTrail) => Promise<unknown>) {
  const made = await testTrail();
  const trail = await made.open();
  await write(trail, made);
  await trail[Symbol.asyncDispose]();
  return made;
}

/** Forbids whatever the text names. */
const openPolicy =
  ({ text }: ArchivedPolicy) =>
  ({ access }: { readonly access: { readonly action: Capability } }) => ({
    permit: text !== `forbid ${access.action}`,
    policyIds: [text],
  });

describe('who could', () => {
  const policy = (minute: number, text: string) =>
    ({ change: 'policy', timeMs: at(minute), hash: text, text }) as const;
  const token = (jti: string, minute: number, more: Parameters<typeof principalOf>[2] = {}) =>
    principalOf(jti, [grantOf({})], {
      issuedAt: seconds(minute),
      expiresAt: seconds(minute + 10),
      ...more,
    });

  /** t1..: tokens of alice and bob; everything happens to them in turn. */
  const story = async (trail: FileTrail) => {
    const use = (principal: ReturnType<typeof token>, minute: number) =>
      trail.intent(intentOf({ principal, timeMs: at(minute), action: 'terminal.read' }));
    const revoke = (
      minute: number,
      what: Parameters<FileTrail['change']>[0] & { change: 'revoked' },
    ) => trail.change({ ...what, timeMs: at(minute) });
    await trail.change(policy(0, 'permit all'));
    await use(token('short', 0), 1);
    await use(token('taken', 0), 1);
    await use(token('bobs', 0, { subject: 'bob' }), 1);
    await use(token('old-key', 0, { keyId: 'old' }), 1);
    await use(
      principalOf('elsewhere', [grantOf({ terminal: 'other*' })], { issuedAt: seconds(0) }),
      1,
    );
    await use(
      principalOf('reader', [grantOf({ actions: ['terminal.read'] })], { issuedAt: seconds(0) }),
      1,
    );
    await use(
      principalOf('limited', [grantOf({ constraints: { expires_at: seconds(3) } })], {
        issuedAt: seconds(0),
      }),
      1,
    );
    await trail.change({
      change: 'delegated',
      timeMs: at(2),
      decisionId: 'd',
      parent: { issuer: ISSUER, jti: 'taken' },
      child: token('child', 2, { actors: ['helper'], lineage: [{ issuer: ISSUER, jti: 'taken' }] }),
    });
    const kind = { change: 'revoked', timeMs: 0 } as const;
    await revoke(4, { ...kind, what: { kind: 'token', issuer: ISSUER, jti: 'taken' } });
    await revoke(5, {
      ...kind,
      what: { kind: 'subject', issuer: ISSUER, subject: 'bob', issuedBefore: seconds(5) },
    });
    await trail.change({
      change: 'keys',
      timeMs: at(6),
      issuer: ISSUER,
      added: ['ed'],
      retired: ['old'],
      stale: false,
    });
    await trail.change(policy(7, 'forbid terminal.write'));
    await trail.change(policy(8, 'permit all'));
    // Presented late, but it could have been earlier.
    await use(token('late', 3), 9);
  };

  const ask = async (minute: number, more: Partial<WhoCouldQuestion> = {}) => {
    await using made = await trailOf(story);
    const question = { action: 'terminal.write', id: 't1', atMs: at(minute), openPolicy } as const;
    const answer = await whoCould(made.dir, { ...question, ...more });
    return {
      could: answer.could.map(({ jti }) => jti).sort(),
      prevented: Object.fromEntries(answer.prevented.map((one) => [one.jti, one.prevented])),
      answer,
    };
  };

  it.each([
    [-1, [], {}],
    [1, ['bobs', 'limited', 'old-key', 'short', 'taken'], {}],
    [2, ['bobs', 'child', 'limited', 'old-key', 'short', 'taken'], {}],
    [3, ['bobs', 'child', 'late', 'old-key', 'short', 'taken'], {}],
    [4, ['bobs', 'late', 'old-key', 'short'], { taken: 'revoked', child: 'revoked' }],
    [5, ['late', 'old-key', 'short'], { taken: 'revoked', child: 'revoked', bobs: 'revoked' }],
    [
      6,
      ['late', 'short'],
      { taken: 'revoked', child: 'revoked', bobs: 'revoked', 'old-key': 'key retired' },
    ],
    [
      7,
      [],
      {
        taken: 'revoked',
        child: 'revoked',
        bobs: 'revoked',
        'old-key': 'key retired',
        late: 'policy',
        short: 'policy',
      },
    ],
    [
      8,
      ['late', 'short'],
      { taken: 'revoked', child: 'revoked', bobs: 'revoked', 'old-key': 'key retired' },
    ],
    [11, ['late'], { child: 'revoked' }],
  ])('at minute %d', async (minute, could, prevented) => {
    expect(await ask(minute)).toMatchObject({ could, prevented });
  });

  it('says under which terms', async () => {
    const { answer } = await ask(2);
    expect(answer.target).toEqual({ owner: '1000', agent: 'coder', session: 'default', id: 't1' });
    expect(answer.could.find(({ jti }) => jti === 'child')).toMatchObject({
      sub: 'alice',
      actors: ['helper'],
      grant: 'g1',
      exp: seconds(12),
      policies: ['permit all'],
    });
  });

  it('answers for another action, and for a terminal that is told in full', async () => {
    expect((await ask(2, { action: 'terminal.kill' })).could).toEqual([]);
    const told = { id: 'other-1', owner: '1000', agent: 'a', session: 's' };
    expect((await ask(11, told)).could).toContain('elsewhere');
    await expect(ask(2, { id: 'unknown' })).rejects.toThrow('knows no terminal unknown');
  });

  it('takes the terminal as it was then, and asks whose where several had one', async () => {
    const target = { owner: '1000', id: 't1', agent: 'first', session: 's' };
    await using made = await trailOf(async (trail) => {
      const principal = principalOf('t', [grantOf({ owner: '*' })], { issuedAt: seconds(0) });
      await trail.intent(intentOf({ principal, timeMs: at(1), target }));
      await trail.intent(
        intentOf({ principal, timeMs: at(5), target: { ...target, agent: 'second' } }),
      );
      await trail.intent(
        intentOf({ principal, timeMs: at(6), decision: 'deny', target: { ...target, agent: 'x' } }),
      );
    });
    const agentAt = async (minute: number) =>
      (await whoCould(made.dir, { action: 'terminal.read', id: 't1', atMs: at(minute) })).target
        .agent;
    expect(await agentAt(2)).toBe('first');
    expect(await agentAt(9)).toBe('second');
    const trail = await made.open();
    await trail.intent(intentOf({ timeMs: at(7), target: { ...target, owner: '1001' } }));
    await trail[Symbol.asyncDispose]();
    await expect(agentAt(9)).rejects.toThrow('1000, 1001 had a terminal t1');
  });

  it.each([
    ['key retired', { retired: ['old'], stale: false }],
    ['keys stale', { retired: [], stale: true }],
  ])('takes a child down with the keys of its root: %s', async (prevented, keys) => {
    const own = 'https://own.test';
    await using made = await trailOf(async (trail) => {
      const root = token('root', 0, { keyId: 'old' });
      const lineage = [{ issuer: ISSUER, jti: 'root' }];
      const child = token('child', 1, { issuer: own, keyId: 'own', actors: ['helper'], lineage });
      const grandchild = token('grandchild', 1, {
        ...{ issuer: own, keyId: 'own', actors: ['a', 'helper'] },
        lineage: [...lineage, { issuer: own, jti: 'child' }],
      });
      await trail.intent(intentOf({ principal: root, timeMs: at(1) }));
      for (const principal of [child, grandchild]) {
        await trail.intent(intentOf({ principal, timeMs: at(2) }));
      }
      const change = { change: 'keys', issuer: ISSUER, added: [], ...keys } as const;
      await trail.change({ ...change, timeMs: at(3) });
    });
    const question = { action: 'terminal.write', id: 't1' } as const;
    const before = await whoCould(made.dir, { ...question, atMs: at(2) });
    expect(before.could.map(({ jti }) => jti)).toEqual(['root', 'child', 'grandchild']);
    const after = await whoCould(made.dir, { ...question, atMs: at(4) });
    expect(after.could).toEqual([]);
    expect(after.prevented.map((one) => one.prevented)).toEqual([prevented, prevented, prevented]);
  });

  it('takes a limited signal for a signal all the same', async () => {
    await using made = await trailOf(async (trail) => {
      const actions = ['terminal.signal'];
      const grants = [
        grantOf({ id: 'some', actions, constraints: { signals: ['SIGINT'] } }),
        grantOf({ id: 'none', actions, constraints: { signals: [] } }),
      ];
      for (const grant of grants) {
        await trail.intent(intentOf({ principal: principalOf(grant.id, [grant]) }));
      }
    });
    const { could } = await whoCould(made.dir, {
      action: 'terminal.signal',
      id: 't1',
      atMs: at(1),
    });
    expect(could.map(({ jti }) => jti)).toEqual(['some']);
  });
});

describe('who did', () => {
  const ask = async (dir: string, question: DidQuestion = {}): Promise<Deed[]> => {
    const deeds: Deed[] = [];
    for await (const deed of did(dir, question)) deeds.push(deed);
    return deeds;
  };
  const shown = (deeds: readonly Deed[]) =>
    deeds.map(({ intent, outcome }) => [
      'decision_id' in intent ? intent.decision_id : `${intent.count} more`,
      outcome?.status,
    ]);

  const story = async (trail: FileTrail) => {
    await trail.intent(intentOf({ decisionId: 'open', timeMs: at(0) }));
    await trail.intent(intentOf({ decisionId: 'kill', timeMs: at(1), action: 'terminal.kill' }));
    trail.outcome({ decisionId: 'kill', timeMs: at(1), status: 'OK' });
    const principal = principalOf('t2', undefined, {
      subject: 'bob',
      actors: ['helper', 'planner'],
    });
    for (let count = 0; count < 3; count += 1) {
      const frame = 'input';
      await trail.intent(
        intentOf({
          decisionId: `no-${count}`,
          timeMs: at(2),
          principal,
          decision: 'deny',
          reason: 'GRANT_MISSING',
          frame,
        }),
      );
    }
    trail.outcome({ decisionId: 'open', timeMs: at(3), status: 'CANCELLED' });
  };

  it('tells decisions in their order, with outcomes that come later', async () => {
    await using made = await trailOf(story);
    expect(shown(await ask(made.dir))).toEqual([
      ['open', 'CANCELLED'],
      ['kill', 'OK'],
      ['no-0', undefined],
      ['2 more', undefined],
    ]);
  });

  it.each<[string, DidQuestion, number]>([
    ['subject', { subject: 'bob' }, 2],
    ['actor', { actor: 'helper' }, 2],
    ['an actor further up', { actor: 'planner' }, 2],
    ['another actor', { actor: 'bob' }, 0],
    ['token', { jti: 't2' }, 2],
    ['action', { action: 'terminal.kill' }, 1],
    ['decision', { decision: 'deny' }, 2],
    ['terminal', { owner: '1000', id: 't1' }, 4],
    ['another terminal', { id: 't2' }, 0],
    ['time', { fromMs: at(1), toMs: at(1) }, 1],
  ])('is asked by %s', async (_, question, count) => {
    await using made = await trailOf(story);
    expect(await ask(made.dir, question)).toHaveLength(count);
  });
});

describe('why', () => {
  it('tells who asked, by which grant, under which policies, and what came of it', async () => {
    await using made = await trailOf(async (trail) => {
      await trail.change({ change: 'policy', timeMs: NOON, hash: 'p1', text: 'permit all' });
      await trail.change({ change: 'policy', timeMs: NOON, hash: 'p2', text: 'forbid some' });
      const grants = [grantOf({ id: 'a', actions: ['terminal.kill'] }), grantOf({ id: 'b' })];
      await trail.intent(
        intentOf({
          decisionId: 'd',
          principal: principalOf('t', grants),
          grantId: 'b',
          considered: [{ grantId: 'a', why: 'action' }],
          policy: { hash: 'p1', ids: ['base'] },
        }),
      );
      trail.outcome({ decisionId: 'd', timeMs: NOON, status: 'OK', firstSeq: 1, lastSeq: 2 });
    });
    expect(await why(made.dir, 'd')).toMatchObject({
      intent: { grant: 'b', considered: [{ grant: 'a', why: 'action' }] },
      outcome: { status: 'OK', last_seq: 2 },
      token: { principal: { jti: 't' } },
      grants: {
        a: { actions: ['terminal.kill'] },
        b: { actions: ['terminal.read', 'terminal.write'] },
      },
      policy: { text: 'permit all' },
    });
    expect(await why(made.dir, 'unknown')).toBeUndefined();
  });

  it('tells what is known of a denial that was counted with others, by the id that all were told', async () => {
    let shared = '';
    await using made = await trailOf(async (trail, { clock }) => {
      for (let count = 0; count < 1_030; count += 1) {
        const peer = { address: `2001:db8::${count.toString(16)}` };
        shared = await trail.intent(strangerOf({ peer }));
      }
      clock.advance(10_000);
    });
    const reasons = await why(made.dir, shared);
    expect(reasons).toMatchObject({ counted: { count: 6, reason: 'TOKEN_INVALID' } });
    expect(reasons).not.toHaveProperty('intent');
  });
});

describe('a grant that was handed on', () => {
  const handedOn = { ...grantOf({ id: 'part' }), from: [{ id: 'g1' }] };
  const principal = principalOf('child', [handedOn], {
    actors: ['helper'],
    lineage: [{ issuer: ISSUER, jti: 'root' }],
  });
  const story = (trail: FileTrail) =>
    trail.intent(intentOf({ principal, action: 'terminal.read', grantId: 'part' }));

  it('counts among those that could', async () => {
    await using made = await trailOf(async (trail) => {
      await trail.change({ change: 'policy', timeMs: NOON - 1, hash: 'p', text: 'permit all' });
      await story(trail);
    });
    const question = { action: 'terminal.write', id: 't1', atMs: at(1), openPolicy } as const;
    expect((await whoCould(made.dir, question)).could.map(({ jti }) => jti)).toEqual(['child']);
  });

  it('counts among those that nobody used', async () => {
    await using made = await trailOf(story);
    expect(await unused(made.dir)).toMatchObject([{ grant: 'part', unused: ['terminal.write'] }]);
  });
});

describe('the tree', () => {
  const story = async (trail: FileTrail) => {
    const root = { issuer: ISSUER, jti: 'root' };
    const child = { issuer: ISSUER, jti: 'child' };
    await trail.intent(intentOf({ principal: principalOf('root') }));
    await trail.intent(intentOf({ principal: principalOf('alone') }));
    await trail.intent(
      intentOf({ principal: principalOf('child', undefined, { actors: ['a'], lineage: [root] }) }),
    );
    for (const jti of ['grandchild-1', 'grandchild-2']) {
      await trail.change({
        change: 'delegated',
        timeMs: NOON,
        decisionId: 'd',
        parent: child,
        child: principalOf(jti, undefined, { actors: ['b', 'a'], lineage: [root, child] }),
      });
    }
    await trail.change({
      change: 'revoked',
      timeMs: at(1),
      what: { kind: 'token', issuer: ISSUER, jti: 'grandchild-1' },
    });
    const other = { issuer: ISSUER, jti: 'never-seen' };
    await trail.intent(
      intentOf({ principal: principalOf('orphan', undefined, { lineage: [other] }) }),
    );
  };

  it('has every line of delegation, from its root', async () => {
    await using made = await trailOf(story);
    expect(await lineageTree(made.dir)).toMatchObject([
      {
        jti: 'root',
        sub: 'alice',
        children: [
          {
            jti: 'child',
            actors: ['a'],
            children: [
              { jti: 'grandchild-1', revoked_ms: at(1), children: [] },
              { jti: 'grandchild-2', actors: ['b', 'a'], children: [] },
            ],
          },
        ],
      },
      { jti: 'never-seen', children: [{ jti: 'orphan' }] },
    ]);
  });

  it('has one child of a delegation that was repeated, and so has everything that is asked', async () => {
    const parent = { issuer: ISSUER, jti: 'root' };
    const child = principalOf('child', undefined, { actors: ['a'], lineage: [parent] });
    await using made = await trailOf(async (trail, { open }) => {
      await trail.change({ change: 'policy', timeMs: NOON, hash: 'p', text: 'permit all' });
      const rpc = 'grantty.v1.GrantService/Delegate';
      await trail.intent(intentOf({ principal: principalOf('root'), decisionId: 'made', rpc }));
      const delegated = { change: 'delegated', timeMs: NOON, parent, child } as const;
      await trail.change({ ...delegated, decisionId: 'made' });
      await trail[Symbol.asyncDispose]();
      // After a restart the same request comes again, and is answered with the same token.
      const next = await open();
      await next.intent(intentOf({ principal: principalOf('root'), decisionId: 'again', rpc }));
      await next.change({ ...delegated, decisionId: 'again', repeated: true });
      await next[Symbol.asyncDispose]();
    });
    const lines: Deed['intent'][] = [];
    for await (const { intent } of did(made.dir, {})) lines.push(intent);
    expect(lines).toMatchObject([{ decision_id: 'made' }, { decision_id: 'again' }]);
    expect(await lineageTree(made.dir)).toMatchObject([
      { jti: 'root', children: [{ jti: 'child', children: [] }] },
    ]);
    expect((await lineageTree(made.dir))[0]?.children).toHaveLength(1);
    const question = { action: 'terminal.write', id: 't1', atMs: at(1), openPolicy } as const;
    const { could } = await whoCould(made.dir, question);
    expect(could.map(({ jti }) => jti).sort()).toEqual(['child', 'root']);
  });

  it('has the line of one token', async () => {
    await using made = await trailOf(story);
    expect(await lineageTree(made.dir, 'grandchild-2')).toMatchObject([
      { jti: 'root', children: [{ jti: 'child', children: [{ jti: 'grandchild-2' }] }] },
    ]);
    expect(await lineageTree(made.dir, 'alone')).toEqual([]);
  });
});

describe('unused', () => {
  it('lists grants and actions that no allowed decision came from', async () => {
    await using made = await trailOf(async (trail) => {
      const both = grantOf({ id: 'both' });
      const idle = grantOf({ id: 'idle', actions: ['terminal.kill'] });
      const full = grantOf({ id: 'full', actions: ['terminal.stop'] });
      const principal = principalOf('t1', [both, idle, full]);
      await trail.intent(intentOf({ principal, grantId: 'both', action: 'terminal.read' }));
      await trail.intent(intentOf({ principal, grantId: 'full', action: 'terminal.stop' }));
      await trail.intent(intentOf({ principal, decision: 'deny', action: 'terminal.write' }));
      const renewed = principalOf('t2', [both], {});
      await trail.intent(
        intentOf({ principal: renewed, grantId: 'both', action: 'terminal.read', timeMs: at(1) }),
      );
    });
    expect(await unused(made.dir)).toMatchObject([
      {
        grant: 'both',
        unused: ['terminal.write'],
        used: ['terminal.read'],
        last_seen_ms: at(1),
      },
      { grant: 'idle', unused: ['terminal.kill'], used: [] },
    ]);
    expect(await unused(made.dir, at(1))).toMatchObject([{ grant: 'both' }]);
  });

  it('counts a list for all that its caller holds', async () => {
    await using made = await trailOf(async (trail) => {
      const { grantId: _, ...list } = intentOf({ action: 'terminal.read' });
      await trail.intent(list);
    });
    expect(await unused(made.dir)).toMatchObject([{ unused: ['terminal.write'] }]);
  });
});
