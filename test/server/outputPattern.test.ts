import fc from 'fast-check';
import type { OutputEvent } from '../../src/core/event.js';
import { OutputPattern } from '../../src/server/outputPattern.js';
import { compilePattern } from '../../src/session/pattern.js';
import { MARGIN_BYTES } from '../../src/store/reader/passage.js';

/** Events of the given bytes, with seqs from 1. */
function outputs(...pieces: (string | readonly number[])[]): OutputEvent[] {
  return pieces.map((piece, index) => ({
    type: 'pty.output',
    seq: index + 1,
    timeMicros: 0,
    data: typeof piece === 'string' ? Buffer.from(piece) : Buffer.from(piece),
  }));
}

/** The one buffer that a log's outputs are shown in. */
const room = Buffer.alloc(MARGIN_BYTES + 1024 * 1024);

/** Shows outputs as the scan of a log does, and has them forgotten afterwards. */
function show(looking: OutputPattern, events: readonly OutputEvent[]): number | undefined {
  let end = MARGIN_BYTES;
  const shown = events.map((event) => {
    const data = room.subarray(end, end + event.data.length);
    data.set(event.data);
    end += data.length;
    return { ...event, data };
  });
  const found = looking.find(shown, room.subarray(0, end));
  room.fill(0x21, 0, end);
  return found;
}

/** What is found when the events come one at a time. */
function findEach(pattern: string, events: readonly OutputEvent[]): number | undefined {
  const looking = new OutputPattern(pattern);
  for (const event of events) {
    const found = show(looking, [event]);
    if (found !== undefined) return found;
  }
  return undefined;
}

describe('a pattern in output', () => {
  it.each([
    ['within one event', 'ready', ['not yet ', 'ready now'], 2],
    ['over a border', 'ready', ['rea', 'dy'], 2],
    ['over a border within a character', 'gr.n', ['gr', [0xc3], [0xbc, 0x6e]], 3],
    ['of characters beyond the first plane', '[😀]x', [[0xf0, 0x9f], [0x98], [0x80], 'x'], 4],
    [
      'that names an end of text, once the last character is whole',
      '^a.$',
      ['a', [0xc3], [0xbc]],
      3,
    ],
    [
      'at bytes that are no UTF-8, each a replacement character',
      'a\\x{FFFD}{2}b',
      ['a', [0xff, 0xfe], 'b'],
      3,
    ],
    ['in a case that folds', '(?i)STRASSE', ['straße ', 'strasse'], 2],
  ] as const)('is found %s', (_what, pattern, pieces, seq) => {
    expect(findEach(pattern, outputs(...pieces))).toBe(seq);
    expect(show(new OutputPattern(pattern), outputs(...pieces))).toBe(seq);
  });

  it('is not found before it is whole', () => {
    const looking = new OutputPattern('é|end');
    const [first, second] = outputs([0xc3], [0x28]) as [OutputEvent, OutputEvent];
    expect(show(looking, [first])).toBeUndefined();
    expect(show(looking, [second])).toBeUndefined();
    expect(show(looking, outputs('end'))).toBe(1);
  });

  it('is found where it began up to 64 KiB ago, and not where it began before', () => {
    const far = (gap: number) => outputs('begin', 'ü'.repeat(gap / 2), 'end');
    const pattern = 'begin(?s:.*)end';
    expect(findEach(pattern, far(64 * 1024 - 10))).toBe(3);
    expect(findEach(pattern, far(64 * 1024))).toBeUndefined();
  });

  it('counts what is left of a character, cut by the limit of the past, for nothing', () => {
    const past = outputs('ü'.repeat(32 * 1024), 'x');
    expect(findEach('\\x{FFFD}', [...past, ...outputs('y', 'z')])).toBeUndefined();
  });

  it('is found where a plain search of past and present finds it, however the output is cut', () => {
    const pattern = fc.constantFrom(
      ...[
        'ab',
        'abc+',
        'a.c',
        '^a',
        'c$',
        '(?m)^b$',
        '\\bab\\b',
        'ab\\B',
        '(?i)AB',
        'é',
        '[é😀]c',
        'a*',
      ],
      ...[
        'ab|ca',
        '(?s)a.*é',
        'b\\z',
        '\\x{FFFD}a',
        'ab.{0,9}ca',
        '(?:ab|c)(?:😀|é)',
        'x?',
        'ab$',
        '\\Aba',
      ],
    );
    const text = fc.constantFrom(
      ...['a', 'b', 'c', 'ab', '\n', ' ', 'é', '😀', 'ca'].map((t) => Buffer.from(t)),
    );
    const byte = fc
      .constantFrom(0xc3, 0xa9, 0xf0, 0x9f, 0x98, 0x80, 0xff)
      .map((b) => Buffer.from([b]));
    const filler = fc
      .tuple(fc.constantFrom('x', 'ü', '\n'), fc.integer({ min: 32_000, max: 66_000 }))
      .map(([character, bytes]) =>
        Buffer.from(character.repeat(bytes / Buffer.byteLength(character))),
      );
    const piece = fc.oneof(
      { weight: 60, arbitrary: text },
      { weight: 20, arbitrary: byte },
      { weight: 3, arbitrary: filler },
    );
    const data = fc
      .array(piece, { minLength: 1, maxLength: 5 })
      .map((parts) => Buffer.concat(parts));
    const steps = fc.array(fc.array(data, { maxLength: 4 }), { maxLength: 8 });
    fc.assert(
      fc.property(pattern, steps, (expression, shown) => {
        const looking = new OutputPattern(expression);
        const naive = new NaiveSearch(expression);
        let seq = 0;
        for (const step of shown) {
          const events = step.map((data): OutputEvent => {
            seq += 1;
            return { type: 'pty.output', seq, timeMicros: 0, data };
          });
          const found = show(looking, events);
          expect(found).toBe(naive.find(events));
          if (found !== undefined) return;
        }
      }),
      { numRuns: 500 },
    );
  });
});

/** The same question, asked of everything each time: the last 64 KiB, and what has been added. */
class NaiveSearch {
  #bytes = Buffer.alloc(0);
  /** Which event each byte came from. */
  #seqs: number[] = [];

  constructor(private readonly pattern: string) {}

  find(events: readonly OutputEvent[]): number | undefined {
    if (events.length === 0) return undefined;
    for (const { seq, data } of events) {
      this.#bytes = Buffer.concat([this.#bytes, data]);
      this.#seqs = this.#seqs.concat(Array.from({ length: data.length }, () => seq));
    }
    const whole = this.#bytes.subarray(0, this.#bytes.length - unfinished(this.#bytes));
    const match = compilePattern(this.pattern).matcher(whole);
    if (match.find()) return this.#seqs[Math.max(match.end() - 1, 0)];
    let surplus = Math.max(this.#bytes.length - 64 * 1024, 0);
    while (surplus > 0 && ((this.#bytes[surplus] ?? 0) & 0xc0) === 0x80) surplus++;
    this.#bytes = this.#bytes.subarray(surplus);
    this.#seqs = this.#seqs.slice(surplus);
    return undefined;
  }
}

/** Bytes at the end that may begin a character whose rest is yet to come. */
function unfinished(bytes: Buffer): number {
  for (let length = 1; length <= 3; length++) {
    const lead = bytes.at(-length) ?? 0;
    const size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
    if (size > length) return length;
    if ((lead & 0xc0) !== 0x80) return 0;
  }
  return 0;
}
