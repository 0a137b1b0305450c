/** Selectors: exact names, prefixes, and the owner that no wildcard reaches. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isName, type Name } from '../../src/core/names.js';
import {
  exactName,
  isSelector,
  parseSelector,
  type Selector,
  selects,
  selectsOwner,
} from '../../src/core/selector.js';

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/).filter(isName);

describe('a selector', () => {
  it('that is a name selects that name alone', () => {
    fc.assert(
      fc.property(name, name, (own, other) => {
        expect(selects(parseSelector('f', own), own)).toBe(true);
        expect(selects(parseSelector('f', own), other)).toBe(own === other);
      }),
    );
  });

  it('that is a prefix selects exactly the names that begin with it', () => {
    fc.assert(
      fc.property(name, fc.nat(64), name, (full, length, other) => {
        const prefix = full.slice(0, Math.max(1, length));
        const selector = parseSelector('f', `${prefix}*`);
        expect(selects(selector, full)).toBe(true);
        expect(selects(selector, other)).toBe(other.startsWith(prefix));
      }),
    );
  });

  it('that is * selects every name', () => {
    fc.assert(fc.property(name, (any) => selects('*' as Selector, any)));
  });

  it('reaches the owner 0 by that very name alone', () => {
    fc.assert(
      fc.property(fc.oneof(name, fc.constantFrom('0', '*', '0*', '00', '00*', '0.*')), (text) => {
        for (const selector of [text, `${text}*`].filter(isSelector)) {
          expect(selectsOwner(selector, '0' as Name)).toBe((selector as string) === '0');
        }
      }),
    );
  });

  it('reaches any other owner as it reaches any other name', () => {
    fc.assert(
      fc.property(
        name,
        name.filter((owner) => (owner as string) !== '0'),
        (text, owner) => {
          for (const selector of [text, `${text}*`, '*'].filter(isSelector)) {
            expect(selectsOwner(selector, owner)).toBe(selects(selector, owner));
          }
        },
      ),
    );
  });

  it.each([
    '',
    '**',
    '*a',
    'a*b',
    'a**',
    '.*',
    '-a',
    '../a',
    'a/b',
    'a\0',
    'a\n',
    'a ',
    'x.sock',
    'x.d',
    'ä',
    '?',
    `${'a'.repeat(65)}`,
    `${'a'.repeat(65)}*`,
  ])('cannot be %j', (text) => {
    expect(isSelector(text)).toBe(false);
    expect(() => parseSelector('f', text)).toThrow('f: must be a name');
  });

  it.each([undefined, null, 1, [], ['*'], {}])('cannot be %j', (value) => {
    expect(() => parseSelector('f', value)).toThrow('f: must be a name');
  });

  it('may begin as a name that would not do by itself', () => {
    expect(isSelector('x.d*')).toBe(true);
    expect(isSelector(`${'a'.repeat(64)}*`)).toBe(true);
  });

  it('spells out a name only when it is one', () => {
    expect(['1000', '10*', '*'].map((text) => exactName(text as Selector))).toEqual([
      '1000',
      undefined,
      undefined,
    ]);
  });
});
