import { GranttyError } from '../../src/core/errors.js';
import type { TerminalSendRequest } from '../../src/session/sessionTypes.js';
import { type SendContext, ShellSend } from '../../src/session/shellSend.js';
import { lease } from '../support/registry.js';
import { gate } from './fakeBackend.js';
import { ManualClock, settled } from './manualClock.js';

/** A session of which a test holds every string. */
class Scene {
  readonly clock = new ManualClock();
  readonly log: string[] = [];
  readonly writing = gate();
  readonly signalling = gate();
  readonly rendering = gate();
  exited = false;
  /** The last seq before the text, as of when it was typed. */
  typedBefore = 10;
  readonly send: ShellSend;

  constructor(request: Partial<TerminalSendRequest> = {}, rendered = true) {
    const context: SendContext = {
      clock: this.clock,
      lastSeq: async () => 10,
      type: async (frame) => {
        this.log.push(`type ${frame.length}`);
        await this.writing.opened;
        this.log.push('typed');
      },
      typeOnce: async (frame, { key }) => {
        this.log.push(`type ${frame.length} as ${key}`);
        return this.typedBefore;
      },
      interrupt: async () => {
        this.log.push('interrupt');
        await this.signalling.opened;
        this.log.push('interrupted');
      },
      probe: async () => ({ shellInForeground: true, waitingForInput: 'yes' }),
      caughtUp: async () => {
        await this.rendering.opened;
        return 12;
      },
      takeDelta: () => ({ text: 'rest', truncated: false }),
      status: () =>
        this.exited ? { kind: 'exited', exitCode: 0, signal: null } : { kind: 'running' },
    };
    if (rendered) this.rendering.open();
    this.send = new ShellSend(context, { text: 'ls', submit: true, ...request });
  }
}

describe('a send', () => {
  it('types text and Enter in one frame', async () => {
    const { log } = new Scene();
    await settled();
    expect(log).toEqual(['type 3']);
  });

  it('types more than a frame holds in several, in order', async () => {
    const scene = new Scene({ text: 'x'.repeat(70_000), submit: false });
    scene.writing.open();
    await settled();
    expect(scene.log).toEqual(['type 65536', 'typed', 'type 4464', 'typed']);
  });

  it('signals after the write in flight, and only then', async () => {
    const scene = new Scene();
    expect(scene.send.cancel()).toBe(true);
    await settled();
    expect(scene.log).toEqual(['type 3']);
    scene.writing.open();
    await settled();
    expect(scene.log).toEqual(['type 3', 'typed', 'interrupt']);
  });

  it('does not settle while its signal is on its way', async () => {
    const scene = new Scene();
    scene.writing.open();
    await settled();
    scene.send.cancel();
    await scene.clock.advance(5_000);
    expect(scene.send.holds).toBe(true);
    scene.signalling.open();
    await scene.clock.advance(200);
    expect((await scene.send.done).waitReason).toBe('stdin_read');
    expect(scene.send.holds).toBe(false);
  });

  it('cannot be cancelled any more when its reason is known, so that no signal comes late', async () => {
    const scene = new Scene({}, false);
    scene.writing.open();
    await scene.clock.advance(200);
    expect(scene.send.cancel()).toBe(false);
    scene.rendering.open();
    expect((await scene.send.done).waitReason).toBe('stdin_read');
    expect(scene.log).not.toContain('interrupt');
  });

  it('returns at its deadline though input is not taken, and holds its session until it is', async () => {
    const scene = new Scene({ timeoutMs: 1_000 });
    await scene.clock.advance(1_000);
    expect((await scene.send.done).waitReason).toBe('timeout');
    expect(scene.send.holds).toBe(true);
    scene.writing.open();
    await settled();
    expect(scene.send.holds).toBe(false);
  });

  it('never signals by timing out', async () => {
    const scene = new Scene({ timeoutMs: 1_000 });
    scene.writing.open();
    scene.send.sawOutput();
    await scene.clock.advance(2_000);
    await scene.send.done;
    expect(scene.log).not.toContain('interrupt');
  });

  it('is cancelled by its request’s signal', async () => {
    const controller = new AbortController();
    const scene = new Scene({ signal: controller.signal });
    scene.writing.open();
    await settled();
    controller.abort();
    await settled();
    expect(scene.log).toContain('interrupt');
  });

  it('is interrupted by another than its sender, who hears when the signal was sent', async () => {
    const scene = new Scene();
    scene.writing.open();
    let told: boolean | undefined;
    const asked = scene.send.interrupt({ lease: () => lease }).then((sent) => {
      told = sent;
    });
    await settled();
    expect(told).toBeUndefined();
    scene.signalling.open();
    await asked;
    expect(told).toBe(true);
    await scene.clock.advance(200);
    expect((await scene.send.done).waitReason).toBe('stdin_read');
    expect(await scene.send.interrupt({ lease: () => lease })).toBe(false);
  });

  it('goes on when another may not interrupt it after all', async () => {
    const scene = new Scene();
    scene.writing.open();
    const refusal = new GranttyError('GRANT_REVOKED', 'no more');
    const asked = scene.send.interrupt({ lease: () => lease });
    scene.signalling.fail(refusal);
    await expect(asked).rejects.toBe(refusal);
    await scene.clock.advance(200);
    expect((await scene.send.done).waitReason).toBe('stdin_read');
  });

  it('with a mark is typed by it, and says when that was done before', async () => {
    const first = new Scene({ mark: { key: 'k', bodyHash: 'b' } });
    await settled();
    expect(first.log).toEqual(['type 3 as k/0']);
    expect(await first.send.started).toEqual({ lastSeq: 10 });
    await first.clock.advance(200);
    expect((await first.send.done).truncated).toBe(false);

    const again = new Scene({ mark: { key: 'k', bodyHash: 'b' } });
    again.typedBefore = 4;
    expect(await again.send.started).toEqual({ lastSeq: 4 });
    await again.clock.advance(200);
    expect((await again.send.done).truncated).toBe(true);
  });

  it('is rejected when its input is refused', async () => {
    const scene = new Scene();
    const refusal = new GranttyError('GRANT_REVOKED', 'no more');
    scene.writing.fail(refusal);
    await expect(scene.send.done).rejects.toBe(refusal);
    await expect(scene.send.started).rejects.toBe(refusal);
    expect(scene.send.holds).toBe(false);
  });

  it('settles as session_exit when the process ended before it could be typed to', async () => {
    const scene = new Scene();
    scene.writing.fail(new GranttyError('TERMINAL_EXITED', 'gone'));
    await settled();
    scene.exited = true;
    scene.send.sawExit();
    expect(await scene.send.done).toMatchObject({
      waitReason: 'session_exit',
      sessionStatus: { kind: 'exited', exitCode: 0, signal: null },
    });
  });

  it('ignores marks that were printed before its input', async () => {
    const scene = new Scene();
    scene.send.sawMark('C', 11);
    scene.send.sawMark('B', 11);
    scene.writing.open();
    await settled();
    scene.send.sawMark('C', 9);
    scene.send.sawMark('B', 10);
    await scene.clock.advance(100);
    expect(scene.send.holds).toBe(true);
    scene.send.sawMark('C', 11);
    scene.send.sawMark('B', 12);
    expect((await scene.send.done).viewport).toBe('rest');
  });

  it('waits for ten minutes at most', async () => {
    const scene = new Scene({ timeoutMs: 3_600_000 });
    await scene.clock.advance(600_000);
    expect((await scene.send.done).waitReason).toBe('timeout');
  });
});
