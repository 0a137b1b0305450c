import { LateSignal } from '../../src/core/lateSignal.js';

describe('a signal that is made late', () => {
  it('fires once, with the first reason, for who asked before and who asks after', () => {
    const late = new LateSignal();
    const { signal } = late;
    expect([late.aborted, signal.aborted]).toEqual([false, false]);
    const fired: unknown[] = [];
    signal.addEventListener('abort', () => fired.push(signal.reason));
    late.abort('first');
    late.abort('second');
    expect(fired).toEqual(['first']);
    expect(late.signal).toBe(signal);
    expect(late.aborted).toBe(true);
  });

  it('has fired already when it is first asked for after its end', () => {
    const late = new LateSignal();
    late.abort('over');
    expect(late.signal.aborted).toBe(true);
    expect(late.signal.reason).toBe('over');
  });
});
