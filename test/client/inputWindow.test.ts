import fc from 'fast-check';
import {
  INPUT_WINDOW_BYTES,
  INPUT_WINDOW_FRAMES,
  InputWindow,
} from '../../src/client/inputWindow.js';

describe('the input window', () => {
  it('is full by bytes or by frames, and has room again when they are taken', () => {
    const window = new InputWindow();
    window.sent(1, INPUT_WINDOW_BYTES);
    expect(window.full).toBe(true);
    window.acknowledged(1);
    expect(window.full).toBe(false);
    const small = new InputWindow();
    for (let index = 1; index <= INPUT_WINDOW_FRAMES; index++) small.sent(index, 1);
    expect(small.full).toBe(true);
    small.refused(7);
    expect(small.full).toBe(false);
  });

  it('counts a frame that was taken in part and then refused once', () => {
    const window = new InputWindow();
    window.sent(1, 10);
    window.sent(2, 10);
    window.acknowledged(4);
    window.refused(1);
    expect(window.bytes).toBe(10);
    window.acknowledged(14);
    expect(window.bytes).toBe(0);
  });

  it('tells on a new stream what of the old one is not known to have arrived', () => {
    const window = new InputWindow();
    window.sent(1, 10);
    window.sent(2, 5);
    window.acknowledged(10);
    expect(window.restart(12)).toBe(3);
    expect(window.bytes).toBe(0);
    window.sent(1, 8);
    window.acknowledged(20);
    expect(window.bytes).toBe(0);
  });

  it('starts over on an attachment that was not resumed', () => {
    const window = new InputWindow();
    window.sent(1, 10);
    window.acknowledged(10);
    window.sent(2, 5);
    expect(window.restart(0)).toBe(5);
    window.sent(1, 8);
    window.acknowledged(8);
    expect(window.bytes).toBe(0);
  });

  it('wakes who waits for room', async () => {
    const window = new InputWindow();
    window.sent(1, 10);
    const changed = window.changed();
    window.acknowledged(10);
    await changed;
  });

  it('holds what was sent less what was taken or refused, in any order of frames', () => {
    const frame = fc.record({ bytes: fc.integer({ min: 1, max: 100 }), refused: fc.boolean() });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 50 }), (frames) => {
        const window = new InputWindow();
        for (const [index, { bytes }] of frames.entries()) window.sent(index + 1, bytes);
        let total = 0;
        for (const [index, { bytes, refused }] of frames.entries()) {
          if (!refused) total += bytes;
          if (refused) window.refused(index + 1);
          else window.acknowledged(total);
          const rest = frames.slice(index + 1).reduce((sum, later) => sum + later.bytes, 0);
          expect(window.bytes).toBe(rest);
        }
      }),
    );
  });
});
