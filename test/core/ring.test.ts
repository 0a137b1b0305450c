/** Things in order, each free to leave. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Ring } from '../../src/core/ring.js';

describe('a ring', () => {
  it('holds what has come and not left, in the order in which it came', () => {
    const step = fc.record({ leaves: fc.boolean(), which: fc.nat() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const ring = new Ring<number>();
        const expected: { value: number; link: { remove(): void } }[] = [];
        steps.forEach(({ leaves, which }, value) => {
          if (!leaves || expected.length === 0) expected.push({ value, link: ring.add(value) });
          else expected.splice(which % expected.length, 1)[0]?.link.remove();
        });
        expect([...ring]).toEqual(expected.map(({ value }) => value));
      }),
    );
  });

  it('lets one leave while it is looked at, and once only', () => {
    const ring = new Ring<string>();
    const links = ['a', 'b', 'c'].map((item) => ring.add(item));
    const seen: string[] = [];
    for (const item of ring) {
      seen.push(item);
      links[seen.length - 1]?.remove();
      links[seen.length - 1]?.remove();
    }
    expect(seen).toEqual(['a', 'b', 'c']);
    expect([...ring]).toEqual([]);
  });

  it('has nothing of what has left lead to what is in it', () => {
    const ring = new Ring<string>();
    const first = ring.add('a');
    ring.add('b');
    first.remove();
    expect([first.item, first.before, first.after]).toEqual([undefined, first, first]);
  });
});
