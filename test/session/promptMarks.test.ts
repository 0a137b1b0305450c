import fc from 'fast-check';
import { PromptMarks, promptMark } from '../../src/session/promptMarks.js';

const secret = '0123456789abcdef';

function marksIn(chunks: readonly Uint8Array[]) {
  const marks = new PromptMarks(secret);
  return chunks.flatMap((chunk) => marks.push(chunk));
}

/** Cuts `data` at these places. */
function cut(data: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (data.length + 1)))].sort((a, b) => a - b);
  return [0, ...at].map((begin, index) => data.subarray(begin, at[index] ?? data.length));
}

describe('prompt marks', () => {
  it('are found in order among other output', () => {
    const text = `a${promptMark('C', secret)}out\x1b[1mput${promptMark('B', secret)}$ `;
    expect(marksIn([Buffer.from(text)])).toEqual(['C', 'B']);
  });

  it('are found however they are split', () => {
    const pieces = [
      promptMark('C', secret),
      promptMark('B', secret),
      '\x1b]133;',
      '\x1b',
      'x',
      '\x07',
    ];
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...pieces), { maxLength: 12 }),
        fc.array(fc.nat(500), { maxLength: 20 }),
        (parts, places) => {
          const data = Buffer.from(parts.join(''));
          const expected = parts.flatMap((part) =>
            part === pieces[0] ? ['C'] : part === pieces[1] ? ['B'] : [],
          );
          expect(marksIn(cut(data, places))).toEqual(expected);
        },
      ),
    );
  });

  it('without the secret, or with another one, are none', () => {
    const forged = [
      '\x1b]133;B\x07',
      '\x1b]133;B;grantty=\x07',
      promptMark('B', 'fedcba9876543210'),
    ];
    expect(marksIn(forged.map((text) => Buffer.from(text)))).toEqual([]);
  });

  it('cost no memory for output that never ends a sequence', () => {
    const marks = new PromptMarks(secret);
    const started = performance.now();
    for (let index = 0; index < 2_000; index += 1) marks.push(Buffer.alloc(1_024, '\x1b]133;'));
    expect(marks.push(Buffer.from(promptMark('B', secret)))).toEqual(['B']);
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
