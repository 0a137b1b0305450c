/** Directories below others, by their text. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { isUnder, normalDirectory } from '../../src/core/directory.js';

const segment = fc.stringMatching(/^[a-z.]{1,4}$/).filter((text) => text !== '.' && text !== '..');
const directory = fc.array(segment, { maxLength: 4 }).map((parts) => `/${parts.join('/')}`);

describe('a directory', () => {
  it('is below itself and all that it is inside of', () => {
    fc.assert(
      fc.property(directory, segment, (root, name) => {
        expect(isUnder(root, [root])).toBe(true);
        expect(isUnder(`${root}/${name}`, [root])).toBe(true);
        expect(isUnder(root, ['/'])).toBe(true);
      }),
    );
  });

  it('is not below one whose name it only begins with', () => {
    fc.assert(
      fc.property(directory, segment, segment, (parent, name, rest) => {
        const root = parent === '/' ? `/${name}` : `${parent}/${name}`;
        expect(isUnder(root + rest, [root])).toBe(false);
        expect(isUnder(parent, [root])).toBe(false);
      }),
    );
  });

  it('is below nothing when it climbs, is relative or holds a NUL', () => {
    for (const path of ['/a/..', '/a/../a', '/..', 'a', '', './a', '/a\0', '/a\0/b']) {
      expect(normalDirectory(path)).toBeUndefined();
      expect(isUnder(path, ['/', '/a'])).toBe(false);
    }
  });

  it('is below nothing when there is no root', () => {
    expect(isUnder('/a', [])).toBe(false);
  });

  it('has one normal form, which is its own', () => {
    fc.assert(
      fc.property(directory, (path) => {
        expect(normalDirectory(path)).toBe(path);
        expect(normalDirectory(`${path.replaceAll('/', '/./')}//`)).toBe(path);
      }),
    );
  });
});
