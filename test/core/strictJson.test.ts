/** JSON in which no object has a member twice. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { parseStrictJson } from '../../src/core/strictJson.js';

describe('strict JSON', () => {
  it('reads what JSON.parse reads', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 5 }), (text) => {
        expect(parseStrictJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('refuses what JSON.parse refuses', () => {
    for (const text of [
      '',
      '{',
      '{"a":1,}',
      "{'a':1}",
      '[1 2]',
      '01',
      '\uFEFF{}',
      '{}{}',
      '"\n"',
    ]) {
      expect(() => parseStrictJson(text)).toThrow(SyntaxError);
    }
  });

  it('refuses a member that stands twice, wherever it stands', () => {
    const member = fc.string();
    const value = fc.json({ maxDepth: 2 });
    const nest = fc.array(fc.constantFrom('array', 'object'), { maxLength: 5 });
    fc.assert(
      fc.property(member, value, value, value, nest, (name, first, between, last, levels) => {
        const key = JSON.stringify(name);
        const other = JSON.stringify(`${name}'`);
        const twice = `{${key}:${first},${other}:${between},${key}:${last}}`;
        const text = levels.reduce(
          (inner, level) => (level === 'array' ? `[0,${inner},{}]` : `{"a":[],"b":${inner}}`),
          twice,
        );
        expect(() => JSON.parse(text)).not.toThrow();
        expect(() => parseStrictJson(text)).toThrow('two members');
      }),
    );
  });

  it.each([
    ['escaped in two ways', '{"\\u0061":1,"a":2}'],
    ['with an escaped quote', '{"a\\"":1,"a\\"":2}'],
    ['with an escaped backslash at its end', '{"a\\\\":1,"a\\\\":2}'],
    ['that is empty', '{"":1,"":2}'],
    ['that is __proto__', '{"__proto__":1,"__proto__":2}'],
    ['spaced apart', '{ "a" : 1 , "a" : 2 }'],
  ])('refuses a member twice %s', (_, text) => {
    expect(() => parseStrictJson(text)).toThrow('two members');
  });

  it.each([
    ['as a member and as a value', '{"a":"a","b":"a"}'],
    ['in two objects', '[{"a":1},{"a":1}]'],
    ['in an object and the one around it', '{"a":{"a":{"a":1}}}'],
    ['after an object that had it', '{"b":{"a":1},"a":1}'],
    ['inside a text', '{"a":"{\\"a\\":1,\\"a\\":2}"}'],
  ])('reads a name %s', (_, text) => {
    expect(parseStrictJson(text)).toEqual(JSON.parse(text));
  });

  it('keeps __proto__ an ordinary member', () => {
    const value = parseStrictJson('{"__proto__":{"a":1}}');
    expect(Object.keys(value as object)).toEqual(['__proto__']);
    expect((value as { a?: number }).a).toBeUndefined();
  });

  it('takes deep nesting without a deep stack', () => {
    const depth = 20_000;
    expect(() => parseStrictJson('['.repeat(depth) + ']'.repeat(depth))).not.toThrow();
  });
});
