import { Mirror } from '../../src/session/mirror.js';
import { MAX_DELTA_BYTES, RenderedDelta } from '../../src/session/renderedDelta.js';
import { ScreenHost } from '../../src/session/screenHost.js';
import type { FromWorker } from '../../src/session/screenProtocol.js';

/** A terminal whose lines are mirrored, as over a worker. */
class Terminal {
  readonly mirror = new Mirror();
  readonly delta: RenderedDelta;
  readonly #host: ScreenHost;
  #seq = 0;
  #rendered: () => void = () => {};

  constructor() {
    this.#host = new ScreenHost((message: FromWorker) => {
      if (message.op === 'mirror') this.mirror.apply(message.update);
      if (message.op === 'rendered') this.#rendered();
    });
    this.#host.receive({ op: 'open', id: 1, size: { cols: 40, rows: 5 }, mirrored: true });
    this.delta = new RenderedDelta(this.mirror);
  }

  async print(text: string, skippedFromSeq?: number): Promise<void> {
    this.#seq += 1;
    const done = new Promise<void>((resolve) => {
      this.#rendered = resolve;
    });
    const step = { seq: this.#seq, data: Buffer.from(text) };
    const gap = skippedFromSeq === undefined ? {} : { skippedFromSeq };
    this.#host.receive({ op: 'feed', id: 1, steps: [{ ...step, ...gap }] });
    await done;
  }

  async take(text: string): Promise<string> {
    await this.print(text);
    return this.delta.take().text;
  }
}

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, index) => `${from + index}\r\n`).join('');

describe('a delta', () => {
  it('is what was printed since the last one', async () => {
    const terminal = new Terminal();
    expect(await terminal.take('$ ')).toBe('$ ');
    expect(await terminal.take('ls\r\na b\r\n$ ')).toBe('ls\na b\n$ ');
    expect(terminal.delta.take()).toEqual({ text: '', truncated: false });
  });

  it('goes on in an open line, so that deltas make one text', async () => {
    const terminal = new Terminal();
    expect(await terminal.take('Password: ')).toBe('Password: ');
    expect(await terminal.take('\r\nwrong\r\n')).toBe('\nwrong\n');
    expect(await terminal.take('done')).toBe('done');
  });

  it('gives a line that was printed over anew, on a line of its own', async () => {
    const terminal = new Terminal();
    expect(await terminal.take('10% done')).toBe('10% done');
    expect(await terminal.take('\r50% done')).toBe('\n50% done');
    expect(await terminal.take('\r\x1b[K')).toBe('\n');
  });

  it('begins with the first line that changed, also above the cursor', async () => {
    const terminal = new Terminal();
    await terminal.take('a 1\r\nb 1\r\nc 1\r\n');
    expect(await terminal.take('\x1b[2Ab 2\x1b[2B\r')).toBe('\nb 2\nc 1\n');
  });

  it('has lines that scrolled away meanwhile', async () => {
    const terminal = new Terminal();
    await terminal.take('start\r\n');
    expect(await terminal.take(numbered(1, 2_000))).toBe(numbered(1, 2_000).replaceAll('\r', ''));
  });

  it('has the alternate screen whole when it changed, and not when it did not', async () => {
    const terminal = new Terminal();
    await terminal.take('$ vi\r\n');
    expect(await terminal.take('\x1b[?1049h\x1b[Hone\r\ntwo')).toBe('one\ntwo');
    expect(terminal.delta.take().text).toBe('');
    expect(await terminal.take('\x1b[HONE')).toBe('\nONE\ntwo');
    expect(await terminal.take('\x1b[?1049l$ ')).toBe('$ ');
  });

  it('of a cleared screen is what is on it now', async () => {
    const terminal = new Terminal();
    await terminal.take('old 1\r\nold 2\r\n$ ');
    expect(await terminal.take('\x1b[H\x1b[2J$ ')).toBe('\n$ ');
  });

  it('is bounded: older lines are dropped whole, and that is said for this delta alone', async () => {
    const terminal = new Terminal();
    await terminal.print(`${'x'.repeat(39)}\r\n`.repeat(9_000));
    const { text, truncated } = terminal.delta.take();
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_DELTA_BYTES);
    expect(truncated).toBe(true);
    expect(new Set(text.split('\n'))).toEqual(new Set(['x'.repeat(39), '']));
    await terminal.print('more');
    expect(terminal.delta.take()).toEqual({ text: 'more', truncated: false });
  });

  it('says when lines were dropped before it was taken', async () => {
    const terminal = new Terminal();
    await terminal.print('kept?\r\n');
    await terminal.print(numbered(1, 12_000));
    expect(terminal.delta.take().truncated).toBe(true);
    await terminal.print('next');
    expect(terminal.delta.take().truncated).toBe(false);
  });

  it('says when output was left out', async () => {
    const terminal = new Terminal();
    await terminal.print('a');
    terminal.delta.take();
    await terminal.print('b', 2);
    expect(terminal.delta.take()).toMatchObject({ truncated: true, skippedFromSeq: 2 });
    expect(terminal.delta.take()).toEqual({ text: '', truncated: false });
  });
});
