import type { TerminalSize } from '../../src/core/event.js';
import type { Step } from '../../src/session/screenProtocol.js';
import { MAX_BEHIND_BYTES, MAX_BEHIND_LINES, ScreenQueue } from '../../src/session/screenQueue.js';
import { output } from './fakeEvents.js';

const KIB = 1024;

function takeAll(queue: ScreenQueue): Step[] {
  const steps: Step[] = [];
  while (!queue.empty) steps.push(...queue.take(64 * KIB));
  return steps;
}

const bytesOf = (steps: readonly Step[]) =>
  steps.reduce((sum, { data }) => sum + (data?.length ?? 0), 0);

function flood(queue: ScreenQueue, events: number, size?: TerminalSize): void {
  for (let seq = 1; seq <= events; seq += 1) {
    queue.push(output(seq, Buffer.alloc(64 * KIB, 'x'), seq === 2 ? size : undefined));
  }
}

describe('output on its way to an emulator', () => {
  it('is passed on whole and in order while it is not too far behind', () => {
    const queue = new ScreenQueue();
    flood(queue, 64);
    const steps = takeAll(queue);
    expect(steps.map(({ seq }) => seq)).toEqual(Array.from({ length: 64 }, (_, at) => at + 1));
    expect(steps.some(({ skippedFromSeq }) => skippedFromSeq !== undefined)).toBe(false);
  });

  it('is left out but for the last 4 MiB, and the first step says from where on', () => {
    const queue = new ScreenQueue();
    flood(queue, 100);
    const steps = takeAll(queue);
    expect(bytesOf(steps)).toBe(MAX_BEHIND_BYTES);
    expect(steps[0]).toMatchObject({ seq: 37, skippedFromSeq: 1 });
    expect(steps.at(-1)?.seq).toBe(100);
  });

  it('is bounded although nobody takes it', () => {
    const queue = new ScreenQueue();
    for (let round = 0; round < 20; round += 1) flood(queue, 100);
    expect(bytesOf(takeAll(queue))).toBe(MAX_BEHIND_BYTES);
  });

  it('is left out where it has more line feeds than scrollback and screen can hold', () => {
    const queue = new ScreenQueue();
    for (let seq = 1; seq <= 30; seq += 1) queue.push(output(seq, '\n'.repeat(1_000)));
    const steps = takeAll(queue);
    expect(bytesOf(steps)).toBe(MAX_BEHIND_LINES);
    expect(steps[0]).toMatchObject({ seq: 20, skippedFromSeq: 1 });
  });

  it('keeps the last size that was stated in what is left out', () => {
    const queue = new ScreenQueue();
    flood(queue, 100, { cols: 100, rows: 30 });
    expect(takeAll(queue)[0]?.size).toEqual({ cols: 100, rows: 30 });
  });

  it('goes on where a sequence or line begins, so that no half of one is shown', () => {
    const queue = new ScreenQueue();
    flood(queue, 64);
    queue.push(output(65, Buffer.from(`;31mred\x1b[0m${'y'.repeat(64 * KIB - 12)}`)));
    for (let seq = 66; seq <= 128; seq += 1) queue.push(output(seq, Buffer.alloc(64 * KIB, 'z')));
    const first = takeAll(queue)[0];
    expect(first?.seq).toBe(65);
    expect(Buffer.from(first?.data?.subarray(0, 5) ?? []).toString()).toBe('\x1b[0my');
  });

  it('has one piece at least, however large', () => {
    const queue = new ScreenQueue();
    queue.push(output(1, '\n'.repeat(64 * KIB)));
    expect(takeAll(queue)).toMatchObject([{ seq: 1 }]);
  });

  it('names a gap of the begin', () => {
    const queue = new ScreenQueue();
    queue.begin(99, 1);
    queue.push(output(100, 'a'));
    expect(takeAll(queue)).toEqual([
      { seq: 99, skippedFromSeq: 1, lineFeeds: 0 },
      { seq: 100, data: Buffer.from('a'), lineFeeds: 0 },
    ]);
  });

  it('carries what lasts of the output that is left out over to the first step', () => {
    const queue = new ScreenQueue();
    queue.push(output(1, '\x1b[?2004h\x1b[?1h\x1b]0;old\x07'));
    queue.push(output(2, '\x1b[?1l\x1b]2;new'));
    queue.push(output(3, '\x07\x1b(0'));
    for (let seq = 4; seq <= 100; seq += 1) queue.push(output(seq, Buffer.alloc(64 * KIB, 'x')));
    const [first] = takeAll(queue);
    expect(first).toMatchObject({ skippedFromSeq: 1, seq: 37 });
    expect(first?.modes).toBe('\x1b[?2004h\x1b[?1l\x1b(0\x1b]2;new\x07');
  });

  it('carries it over several gaps', () => {
    const queue = new ScreenQueue();
    queue.push(output(1, '\x1b[?2004h'));
    for (let round = 0; round < 5; round += 1) flood(queue, 100);
    expect(takeAll(queue)[0]?.modes).toBe('\x1b[?2004h');
  });

  describe('for a screen alone', () => {
    const lines = (count: number, text = 'a line') => `${text}\r\n`.repeat(count);

    function behind(...last: readonly string[]): ScreenQueue {
      const queue = new ScreenQueue();
      queue.begin(0, 1);
      for (const [at, data] of ['first', ...last].entries()) queue.push(output(at + 1, data));
      return queue;
    }

    it('begins where enough lines come to scroll it away', () => {
      const queue = behind(lines(100), lines(100), lines(100));
      expect(queue.cutToScreen(24)).toBe(true);
      const steps = takeAll(queue);
      expect(steps.map(({ seq }) => seq)).toEqual([4]);
      expect(steps[0]?.skippedFromSeq).toBe(1);
    });

    it('finds them in colour, and over several events', () => {
      const queue = behind(lines(100), ...Array(30).fill(lines(2, '\x1b[1;31mred\x1b[m\x1b[K')));
      expect(queue.cutToScreen(24)).toBe(true);
      expect(takeAll(queue).map(({ seq }) => seq)[0]).toBe(8);
    });

    it('keeps all that a program drew by moving the cursor since', () => {
      const queue = behind(lines(100), lines(100), '\x1b[H', lines(40), '\x1b[5;5Hx');
      expect(queue.cutToScreen(24)).toBe(true);
      expect(takeAll(queue).map(({ seq }) => seq)).toEqual([3, 4, 5, 6]);
    });

    it.each([
      [
        'nothing is left out anyway',
        () => {
          const queue = new ScreenQueue();
          queue.push(output(1, lines(100)));
          queue.push(output(2, lines(100)));
          return queue;
        },
      ],
      ['there are too few lines', () => behind(lines(20), lines(20))],
      ['the cursor is moved among them', () => behind(...Array(50).fill(`\x1b[A${lines(10)}`))],
      ['they scroll a part of the screen', () => behind('\x1b[2;10r', lines(100))],
      ['they scroll the alternate screen', () => behind('\x1b[?1049h', lines(100))],
    ] as const)('is whole where %s', (_why, make) => {
      const queue = make();
      expect(queue.cutToScreen(24)).toBe(false);
      expect(takeAll(queue).at(0)?.seq).toBeLessThan(2);
    });
  });
});
