/** The clock of the server, over times that no single timer of Node.js can wait. */
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { systemClock } from '../../src/server/clock.js';

const DAY_MS = 24 * 3600_000;

describe('a timer', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });

  afterEach(() => {
    jest.useRealTimers();
  });

  it.each([1, 2 ** 31 - 1, 2 ** 31, 100 * DAY_MS])('fires after %d ms, and not before', (ms) => {
    const fired = jest.fn();
    systemClock.after(ms, fired);
    jest.advanceTimersByTime(ms - 1);
    expect(fired).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledTimes(1);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('can be cancelled at any stage', () => {
    const fired = jest.fn();
    const cancel = systemClock.after(100 * DAY_MS, fired);
    jest.advanceTimersByTime(60 * DAY_MS);
    cancel();
    expect(jest.getTimerCount()).toBe(0);
    jest.advanceTimersByTime(60 * DAY_MS);
    expect(fired).not.toHaveBeenCalled();
  });

  it('of a time that has passed fires at once, and of no end never', () => {
    const fired = jest.fn();
    systemClock.after(-5, fired);
    jest.advanceTimersByTime(0);
    expect(fired).toHaveBeenCalledTimes(1);
    const cancel = systemClock.after(Infinity, fired);
    jest.advanceTimersByTime(365 * DAY_MS);
    expect(fired).toHaveBeenCalledTimes(1);
    cancel();
  });
});
