/** Which variables of the environment a request may set. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  fixedEnvNames,
  isEnvName,
  isEnvPattern,
  isFixedEnvName,
  isFreeEnvName,
  isProtectedEnvName,
  maySetEnv,
  protectedEnvNames,
} from '../../src/core/envNames.js';

const name = fc.stringMatching(/^[A-Za-z_][A-Za-z0-9_]{0,20}$/);
const pattern = fc.oneof(
  name,
  name.map((text) => `${text}*`),
  fc.constant('*'),
);
const protectedName = fc
  .tuple(fc.constantFrom(...protectedEnvNames), fc.stringMatching(/^[A-Z0-9_]{0,8}$/))
  .map(([text, rest]) => (text.endsWith('*') ? text.slice(0, -1) + rest : text));

describe('a variable', () => {
  it('that loads code in the name of another program is covered by no wildcard', () => {
    fc.assert(
      fc.property(protectedName, fc.array(pattern), (protectedOne, allowed) => {
        expect(isProtectedEnvName(protectedOne)).toBe(true);
        expect(maySetEnv(protectedOne, ['*', `${protectedOne}*`, ...allowed])).toBe(
          allowed.includes(protectedOne),
        );
        expect(maySetEnv(protectedOne, [protectedOne])).toBe(true);
      }),
    );
  });

  it('that says who the child is cannot be set at all', () => {
    for (const fixed of fixedEnvNames) {
      expect(isFixedEnvName(fixed)).toBe(true);
      expect(maySetEnv(fixed, ['*', fixed, `${fixed}*`])).toBe(false);
    }
  });

  it.each(['LANG', 'LC_ALL', 'LC_', 'TZ', 'COLORTERM', 'TERM'])('%s may always be set', (free) => {
    expect(isFreeEnvName(free)).toBe(true);
    expect(maySetEnv(free, [])).toBe(true);
  });

  it.each(['LANGUAGE', 'TERMINFO', 'TZDIR', 'lang', 'LC'])('%s needs a grant', (other) => {
    expect(maySetEnv(other, [])).toBe(false);
    expect(maySetEnv(other, ['*'])).toBe(true);
  });

  it('of the rest may be set as soon as one entry matches', () => {
    const ordinary = name.filter(
      (text) => !isFixedEnvName(text) && !isFreeEnvName(text) && !isProtectedEnvName(text),
    );
    fc.assert(
      fc.property(ordinary, fc.array(pattern), (variable, allowed) => {
        const matches = allowed.some((text) =>
          text.endsWith('*') ? variable.startsWith(text.slice(0, -1)) : variable === text,
        );
        expect(maySetEnv(variable, allowed)).toBe(matches);
      }),
    );
  });

  it('whose name is none cannot be set', () => {
    for (const unsound of ['', '1A', 'A-B', 'A=B', 'A\0', 'MY_*', '*', 'a b', 'A'.repeat(257)]) {
      expect(isEnvName(unsound)).toBe(false);
      expect(maySetEnv(unsound, ['*', unsound])).toBe(false);
    }
  });
});

describe('an entry of env_allow', () => {
  it.each(['A', '_', 'A_1', 'A*', '_*', '*'])('may be %j', (text) => {
    expect(isEnvPattern(text)).toBe(true);
  });

  it.each(['', '**', '*A', 'A*B', '1*', 'A=*', 'A-*', ' *'])('may not be %j', (text) => {
    expect(isEnvPattern(text)).toBe(false);
  });
});
