import { PARK_AFTER_MS, ScreenHost } from '../../src/session/screenHost.js';
import type { FromWorker } from '../../src/session/screenProtocol.js';
import type { ScreenState } from '../../src/session/screenState.js';

/** A host whose messages a test reads one by one. */
class Host {
  now = 0;
  readonly posted: FromWorker[] = [];
  readonly host = new ScreenHost(
    (message) => {
      this.posted.push(message);
      this.#wake();
    },
    () => this.now,
  );
  #wake: () => void = () => {};

  async next(op: FromWorker['op']): Promise<FromWorker> {
    for (;;) {
      const index = this.posted.findIndex((message) => message.op === op);
      const [message] = index < 0 ? [] : this.posted.splice(index, 1);
      if (message) return message;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async screen(): Promise<ScreenState> {
    this.host.receive({ op: 'ask', id: 1, call: 1, kind: 'screen', ask: { format: 'text' } });
    const message = await this.next('answer');
    return (message as { readonly answer: ScreenState }).answer;
  }
}

describe('the host of emulators', () => {
  it('parks an emulator that nobody uses, and brings it back by itself', async () => {
    const host = new Host();
    host.host.receive({ op: 'open', id: 1, size: { cols: 20, rows: 2 }, mirrored: false });
    host.host.receive({ op: 'feed', id: 1, steps: [{ seq: 1, data: Buffer.from('kept') }] });
    await host.next('rendered');
    host.now = PARK_AFTER_MS + 1;
    host.host.parkIdle();
    expect((await host.screen()).screen).toBe('kept\n\n');
    host.host.receive({ op: 'feed', id: 1, steps: [{ seq: 2, data: Buffer.from(' on') }] });
    expect(await host.screen()).toMatchObject({ screen: 'kept on\n\n', throughSeq: 2 });
  });

  it('answers a question about what it does not have with a failure', async () => {
    const host = new Host();
    host.host.receive({ op: 'ask', id: 9, call: 4, kind: 'page', ask: {} });
    expect(await host.next('failed')).toMatchObject({ call: 4 });
  });

  it('says why a question was refused', async () => {
    const host = new Host();
    host.host.receive({ op: 'open', id: 1, size: { cols: 20, rows: 2 }, mirrored: false });
    host.host.receive({ op: 'ask', id: 1, call: 5, kind: 'find', ask: { pattern: '(' } });
    expect(await host.next('failed')).toMatchObject({
      call: 5,
      failure: { reason: 'FIELD_INVALID', violations: [{ field: 'pattern' }] },
    });
  });

  it('ends one emulator that fails, alone', async () => {
    const host = new Host();
    host.host.receive({ op: 'open', id: 1, size: { cols: 20, rows: 2 }, mirrored: false });
    host.host.receive({ op: 'open', id: 2, size: { cols: 20, rows: 2 }, mirrored: false });
    const size = { cols: 20, rows: Number.NaN };
    host.host.receive({ op: 'feed', id: 2, steps: [{ seq: 1, size }] });
    expect(await host.next('broken')).toMatchObject({ id: 2 });
    host.host.receive({ op: 'feed', id: 1, steps: [{ seq: 1, data: Buffer.from('well') }] });
    expect((await host.screen()).screen).toBe('well\n\n');
  });
});
