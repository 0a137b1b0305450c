import fc from 'fast-check';
import { DetachScanner, parseDetachKeys } from '../../src/cli/detachKeys.js';
import { UsageError } from '../../src/cli/exitCode.js';

function scan(keys: string, ...chunks: string[]): [string, boolean] {
  const scanner = new DetachScanner(parseDetachKeys(keys));
  let passed = '';
  for (const chunk of chunks) {
    const { pass, detach } = scanner.push(Buffer.from(chunk, 'latin1'));
    passed += Buffer.from(pass).toString('latin1');
    if (detach) return [passed, true];
  }
  return [passed, false];
}

describe('the detach keys', () => {
  it('detach, and what is typed before them is passed on', () => {
    expect(scan('ctrl-]', 'ls\r', 'a\x1db')).toEqual(['ls\ra', true]);
  });

  it('are found over several reads', () => {
    expect(scan('ctrl-p,ctrl-q', 'a\x10', '\x11b')).toEqual(['a', true]);
  });

  it('are passed on when they turn out to be something else', () => {
    expect(scan('ctrl-p,ctrl-q', 'a\x10', 'b')).toEqual(['a\x10b', false]);
    expect(scan('ctrl-p,ctrl-q', '\x10', '\x10', '\x11')).toEqual(['\x10', true]);
  });

  it('are none when the list is empty', () => {
    expect(scan('', 'a\x1d')).toEqual(['a\x1d', false]);
  });

  it('are a usage error when they are no keys', () => {
    expect(() => parseDetachKeys('ctrl-nothing')).toThrow(UsageError);
  });

  it('hold back no more than a beginning of themselves, however the input is cut', () => {
    const typed = fc.array(fc.constantFrom('\x10', '\x11', 'a'), { maxLength: 30 });
    fc.assert(
      fc.property(typed, (keys) => {
        const [whole, detached] = scan('ctrl-p,ctrl-q', keys.join(''));
        const [passed, again] = scan('ctrl-p,ctrl-q', ...keys);
        expect(again).toBe(detached);
        if (detached) expect(passed).toBe(whole);
        else expect(['', '\x10']).toContain(keys.join('').slice(passed.length));
      }),
    );
  });
});
