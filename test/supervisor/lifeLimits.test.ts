import { InstanceLife } from '../../src/supervisor/instanceLife.js';
import { ManualTicker } from '../support/manualTicker.js';
import { createSpec, eventsUntilExit, lease, startRegistry } from '../support/registry.js';
import { createPrinting } from '../support/supervisorContract.js';

const untouched = { isHeld: false, lastSeq: 0, inputBytes: 0 };

describe('the life of an instance', () => {
  it('is over when it has gone without use for as long as it may, and not a moment earlier', () => {
    const life = new InstanceLife(0);
    expect(life.overdue({ idleMs: 1000 }, untouched, 500)).toBeUndefined();
    expect(life.overdue({ idleMs: 1000 }, untouched, 1499)).toBeUndefined();
    expect(life.overdue({ idleMs: 1000 }, untouched, 1500)).toBe('idle-limit');
  });

  it.each([
    ['output', { lastSeq: 1 }],
    ['input', { inputBytes: 1 }],
    ['an attachment', { isHeld: true }],
  ])('goes on with %s, and is quiet from then on', (_what, use) => {
    const life = new InstanceLife(0);
    life.overdue({ idleMs: 1000 }, untouched, 0);
    expect(life.overdue({ idleMs: 1000 }, { ...untouched, ...use }, 5000)).toBeUndefined();
    const after = { ...untouched, ...use, isHeld: false };
    expect(life.overdue({ idleMs: 1000 }, after, 5999)).toBeUndefined();
    expect(life.overdue({ idleMs: 1000 }, after, 6000)).toBe('idle-limit');
  });

  it('is over at its greatest age, whatever its use', () => {
    const life = new InstanceLife(1000);
    const limits = { idleMs: 10, lifetimeMs: 5000 };
    for (let now = 1000; now < 6000; now += 5) {
      expect(life.overdue(limits, { ...untouched, lastSeq: now }, now)).toBeUndefined();
    }
    expect(life.overdue(limits, { ...untouched, lastSeq: 1 }, 6000)).toBe('lifetime-limit');
  });
});

describe('terminals whose life is limited', () => {
  it('are stopped when nobody has used them, with the reason in exit and record', async () => {
    const ticker = new ManualTicker();
    await using registry = await startRegistry({ ticker, limits: { life: { idleMs: 60_000 } } });
    const { supervisor } = registry;
    const [idle, attached, fed] = [['cat'], ['cat'], ['cat']].map((c) => createSpec(c));
    if (!idle || !attached || !fed) throw new Error('three were made');
    for (const spec of [idle, attached, fed]) await supervisor.create(spec);
    const who = { kind: 'human', subject: 's', principal: 'p' } as const;
    const channel = await supervisor.attach(attached.tuple, who);
    ticker.advance(1_000);
    ticker.advance(58_000);
    await supervisor.write(fed.tuple, { data: Buffer.from('x'), lease });
    const ended = eventsUntilExit(supervisor, idle.tuple);
    ticker.advance(3_000);
    expect((await ended).exit).toMatchObject({ signal: 'SIGTERM', reason: 'idle-limit' });
    const { record } = await supervisor.exited(idle.tuple, AbortSignal.timeout(10_000));
    expect(record).toMatchObject({
      state: 'exited',
      exit: { reason: 'idle-limit', exitCode: 143 },
    });
    for (const spec of [attached, fed]) {
      expect((await supervisor.get(spec.tuple))?.record.state).toBe('running');
    }

    // Its quiet time begins with the end of the attachment.
    await channel[Symbol.asyncDispose]();
    const left = eventsUntilExit(supervisor, attached.tuple);
    ticker.advance(59_000);
    expect((await supervisor.get(attached.tuple))?.record.exit).toBeUndefined();
    ticker.advance(2_000);
    expect((await left).exit).toMatchObject({ reason: 'idle-limit' });
  });

  it('are not spared by somebody who watches, nor is another instance by the one before', async () => {
    const ticker = new ManualTicker();
    await using registry = await startRegistry({ ticker, limits: { life: { idleMs: 10_000 } } });
    const { supervisor } = registry;
    const spec = createSpec(['cat']);
    await supervisor.create(spec);
    const watched = eventsUntilExit(supervisor, spec.tuple);
    ticker.advance(0);
    ticker.advance(10_000);
    expect((await watched).exit).toMatchObject({ reason: 'idle-limit' });
    await supervisor.exited(spec.tuple, AbortSignal.timeout(10_000));
    await supervisor.start(spec.tuple, {});
    ticker.advance(1_000);
    ticker.advance(8_000);
    expect((await supervisor.get(spec.tuple))?.record.state).toBe('running');
    const again = eventsUntilExit(supervisor, spec.tuple);
    await supervisor.kill(spec.tuple, { lease });
    expect((await again).exit.reason).toBeUndefined();
  });

  it('are killed after the grace when they do not heed, at their greatest age', async () => {
    const ticker = new ManualTicker();
    const limits = { life: { lifetimeMs: 3_600_000 } };
    await using registry = await startRegistry({ ticker, limits });
    const { supervisor } = registry;
    const script = 'trap "" TERM HUP; echo ready; while :; do sleep 0.1; done';
    const { key } = await createPrinting(supervisor, ['sh', '-c', script], 'ready');
    const ended = eventsUntilExit(supervisor, key);
    ticker.advance(3_599_000);
    expect((await supervisor.get(key))?.record.state).toBe('running');
    ticker.advance(1_000);
    // While it is being ended, further looks do nothing.
    for (let look = 0; look < 10; look += 1) ticker.advance(1_000);
    expect((await ended).exit).toMatchObject({ signal: 'SIGKILL', reason: 'lifetime-limit' });
  }, 30_000);

  it('share one timer, and there is none where nothing is limited', async () => {
    const ticker = new ManualTicker();
    const registry = await startRegistry({ ticker, limits: { life: { idleMs: 60_000 } } });
    for (let n = 0; n < 3; n += 1) await registry.supervisor.create(createSpec(['cat']));
    expect(ticker.periods).toEqual([1_000]);
    await registry[Symbol.asyncDispose]();
    expect(ticker.tasks).toBe(0);
    await using unlimited = await startRegistry({ ticker });
    await unlimited.supervisor.create(createSpec(['cat']));
    expect(ticker.tasks).toBe(0);
  });
});
