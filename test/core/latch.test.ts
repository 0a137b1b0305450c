import { Latch } from '../../src/core/latch.js';

describe('a latch', () => {
  it('ends the waits that there are when it is released, and those that come later', async () => {
    const latch = new Latch();
    const { signal } = new AbortController();
    const waits = Promise.all([latch.wait(signal), latch.wait(signal)]);
    expect(latch.waiting).toBe(2);
    latch.release();
    await waits;
    await latch.wait(signal);
    expect(latch.waiting).toBe(0);
  });

  it('keeps nothing of a wait that was given up, and goes on for the others', async () => {
    const latch = new Latch();
    const giveUp = new AbortController();
    const patient = latch.wait(new AbortController().signal);
    const impatient = latch.wait(giveUp.signal);
    giveUp.abort(new Error('enough'));
    await expect(impatient).rejects.toThrow('enough');
    expect(latch.waiting).toBe(1);
    await expect(latch.wait(giveUp.signal)).rejects.toThrow('enough');
    latch.release();
    await patient;
  });
});
