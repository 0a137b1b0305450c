import { Readiness, type ReadinessOptions } from '../../src/session/readiness.js';
import type { ForegroundState } from '../../src/supervisor/api.js';
import { ManualClock, settled } from './manualClock.js';

const busy: ForegroundState = { shellInForeground: false, waitingForInput: 'no' };
const shell: ForegroundState = { shellInForeground: true, waitingForInput: 'no' };
const waiting: ForegroundState = { shellInForeground: true, waitingForInput: 'yes' };
const silent: ForegroundState = { shellInForeground: false, waitingForInput: 'unknown' };

class Wait {
  readonly clock = new ManualClock();
  state: ForegroundState = busy;
  probes = 0;
  reason: string | undefined;
  readonly readiness: Readiness;
  readonly #began = this.clock.now();

  constructor(options: Partial<ReadinessOptions> = {}) {
    this.readiness = new Readiness({
      clock: this.clock,
      timeoutMs: 30_000,
      severalLines: false,
      probe: async () => {
        this.probes += 1;
        return this.state;
      },
      ...options,
    });
    void this.readiness.reason.then((reason) => {
      this.reason = reason;
    });
  }

  /** Moves on until there is a reason; gives it and how long that took. */
  async until(maxMs = 60_000): Promise<readonly [string | undefined, number]> {
    while (this.reason === undefined && this.clock.now() - this.#began < maxMs) {
      await this.clock.advance(1);
    }
    return [this.reason, this.clock.now() - this.#began];
  }
}

describe('readiness', () => {
  it('is a prompt mark after a command of ours, with the shell in the foreground: at once', async () => {
    const wait = new Wait();
    wait.readiness.begin();
    wait.readiness.sawMark('C');
    await wait.clock.advance(20);
    wait.state = shell;
    wait.readiness.sawOutput();
    wait.readiness.sawMark('B');
    await settled();
    expect(wait.reason).toBe('stdin_read');
  });

  it('is not a mark while another program is in the foreground', async () => {
    const wait = new Wait();
    wait.readiness.begin();
    wait.readiness.sawMark('C');
    wait.readiness.sawMark('B');
    expect(await wait.until()).toEqual(['inferred_idle', 3_000]);
  });

  it('is not the prompt of an earlier command: that is left to the probe', async () => {
    const wait = new Wait();
    wait.state = shell;
    wait.readiness.begin();
    wait.readiness.sawMark('B');
    await wait.clock.advance(140);
    expect(wait.reason).toBeUndefined();
    wait.readiness.sawMark('C');
    wait.readiness.sawMark('B');
    await settled();
    expect(wait.reason).toBe('stdin_read');
  });

  it('is not a prompt between two commands of one text', async () => {
    const wait = new Wait({ severalLines: true });
    wait.state = shell;
    wait.readiness.begin();
    wait.readiness.sawMark('C');
    wait.readiness.sawMark('B');
    await settled();
    expect(wait.reason).toBeUndefined();
    wait.readiness.sawMark('C');
    wait.readiness.sawMark('B');
    wait.state = waiting;
    await wait.clock.advance(50);
    expect(wait.reason).toBe('stdin_read');
  });

  it('is the first prompt there is, where nothing was typed', async () => {
    const wait = new Wait({ firstPrompt: true });
    wait.state = shell;
    wait.readiness.begin();
    wait.readiness.sawMark('B');
    await settled();
    expect(wait.reason).toBe('stdin_read');
  });

  it('is a program that waits for input, 150 ms after the input at the earliest', async () => {
    const wait = new Wait();
    wait.state = waiting;
    wait.readiness.begin();
    expect(await wait.until()).toEqual(['stdin_read', 150]);
  });

  it('counts nothing from before the input', async () => {
    const wait = new Wait();
    wait.state = waiting;
    await wait.clock.advance(1_000);
    expect(wait.probes).toBe(0);
    wait.readiness.begin();
    expect(await wait.until()).toEqual(['stdin_read', 1_150]);
  });

  it('is not what the probe says while output is still arriving', async () => {
    const wait = new Wait();
    wait.state = waiting;
    wait.readiness.begin();
    await wait.clock.advance(145);
    wait.readiness.sawOutput();
    expect(await wait.until()).toEqual(['stdin_read', 200]);
  });

  it('is inferred from 3 s of silence since the input, not at 0 ms', async () => {
    const wait = new Wait();
    wait.readiness.begin();
    expect(await wait.until()).toEqual(['inferred_idle', 3_000]);
  });

  it('is inferred from 3 s of silence since the last output', async () => {
    const wait = new Wait();
    wait.readiness.begin();
    await wait.clock.advance(1_000);
    wait.readiness.sawOutput();
    expect(await wait.until()).toEqual(['inferred_idle', 4_000]);
  });

  it('fails closed: where /proc says nothing, silence decides', async () => {
    const wait = new Wait();
    wait.state = silent;
    wait.readiness.begin();
    expect(await wait.until()).toEqual(['inferred_idle', 3_000]);
  });

  it('fails closed: where the probe fails, silence decides', async () => {
    const wait = new Wait({ probe: () => Promise.reject(new Error('gone')) });
    wait.readiness.begin();
    expect(await wait.until()).toEqual(['inferred_idle', 3_000]);
  });

  it('is given up at the deadline, input taken or not', async () => {
    expect(await new Wait({ timeoutMs: 500 }).until()).toEqual(['timeout', 500]);
    const chatty = new Wait({ timeoutMs: 5_000 });
    chatty.readiness.begin();
    for (let ms = 0; ms < 6_000; ms += 100) {
      await chatty.clock.advance(100);
      chatty.readiness.sawOutput();
    }
    expect(chatty.reason).toBe('timeout');
  });

  it('is given up at the deadline although a probe never answers', async () => {
    const wait = new Wait({ timeoutMs: 500, probe: () => new Promise(() => {}) });
    wait.readiness.begin();
    expect(await wait.until()).toEqual(['timeout', 500]);
  });

  it('ends with the session', async () => {
    const wait = new Wait();
    wait.readiness.begin();
    wait.readiness.sawExit();
    await settled();
    expect(wait.reason).toBe('session_exit');
  });

  it('counts nothing while a signal is on its way, nor what was seen before it', async () => {
    const wait = new Wait();
    wait.state = waiting;
    wait.readiness.begin();
    await wait.clock.advance(100);
    wait.readiness.hold();
    await wait.clock.advance(1_000);
    expect(wait.reason).toBeUndefined();
    wait.readiness.begin();
    expect(await wait.until()).toEqual(['stdin_read', 1_250]);
  });

  it('leaves no timer behind', async () => {
    const wait = new Wait();
    wait.readiness.begin();
    await wait.until();
    expect(wait.clock.timers).toBe(0);
  });
});
