import fc from 'fast-check';
import type { Name } from '../../src/core/names.js';
import { TerminalIndex } from '../../src/supervisor/terminalIndex.js';

type Place = Readonly<Record<'owner' | 'id', Name>>;

/** Names of which one begins like another, and goes on with what sorts before a slash. */
const names = fc.constantFrom('a', 'a-b', 'a.b', 'a+', 'b', 'B', '1') as fc.Arbitrary<Name>;
const places = fc.record({ owner: names, id: names });

function bytewise(a: Place, b: Place): number {
  return (
    Buffer.compare(Buffer.from(a.owner), Buffer.from(b.owner)) ||
    Buffer.compare(Buffer.from(a.id), Buffer.from(b.id))
  );
}

function same(a: Place, b: Place): boolean {
  return bytewise(a, b) === 0;
}

describe('the index of terminals', () => {
  it('lists by owner, then id, by bytes, and any part of that, whatever came and went', () => {
    const steps = fc.array(fc.record({ place: places, adds: fc.boolean() }), { maxLength: 40 });
    const asked = {
      owner: fc.option(names, { nil: undefined }),
      after: fc.option(places, { nil: undefined }),
      limit: fc.integer({ min: 1, max: 5 }),
    };
    fc.assert(
      fc.property(steps, fc.record(asked), (all, { owner, after, limit }) => {
        const index = new TerminalIndex<{ readonly record: Place }>();
        let expected: Place[] = [];
        for (const { place, adds } of all) {
          expected = expected.filter((other) => !same(other, place));
          if (adds) expected.push(place);
          if (adds) index.set({ record: place });
          else index.delete(place);
        }
        expected.sort(bytewise);
        const records = (found: readonly { readonly record: Place }[]) =>
          found.map(({ record }) => record);
        expect(records(index.list())).toEqual(expected);
        const part = { limit, ...(after && { after }) };
        expect(records(index.list(owner, part))).toEqual(
          expected
            .filter((place) => owner === undefined || place.owner === owner)
            .filter((place) => after === undefined || bytewise(place, after) > 0)
            .slice(0, limit),
        );
        for (const place of expected) expect(index.get(place)?.record).toEqual(place);
      }),
      { numRuns: 300 },
    );
  });
});
