import { REQUEST_MEMORY_MS, RequestMemory } from '../../src/supervisor/requestMemory.js';

describe('the memory of requests', () => {
  const mark = { key: 'k', bodyHash: 'h' };

  it('runs an effect once for repetitions, in flight and done', async () => {
    const memory = new RequestMemory(() => 0);
    let runs = 0;
    const effect = async () => {
      runs += 1;
      return runs;
    };
    const both = await Promise.all([memory.once(mark, effect), memory.once(mark, effect)]);
    expect([...both, await memory.once(mark, effect)]).toEqual([1, 1, 1]);
  });

  it('refuses the same id with another body', async () => {
    const memory = new RequestMemory(() => 0);
    await memory.once(mark, async () => {});
    await expect(memory.once({ ...mark, bodyHash: 'other' }, async () => {})).rejects.toMatchObject(
      { reason: 'REQUEST_ID_REUSED' },
    );
  });

  it('tries again after a failure, and after ten minutes', async () => {
    let now = 0;
    const memory = new RequestMemory(() => now);
    let runs = 0;
    await expect(
      memory.once(mark, async () => {
        throw new Error('failed');
      }),
    ).rejects.toThrow('failed');
    const effect = async () => {
      runs += 1;
    };
    await memory.once(mark, effect);
    now = REQUEST_MEMORY_MS - 1;
    await memory.once(mark, effect);
    expect(runs).toBe(1);
    now = REQUEST_MEMORY_MS;
    await memory.once(mark, effect);
    expect(runs).toBe(2);
  });

  it('runs each request without a mark', async () => {
    const memory = new RequestMemory(() => 0);
    let runs = 0;
    for (let i = 0; i < 3; i += 1) {
      await memory.once(undefined, async () => {
        runs += 1;
      });
    }
    expect(runs).toBe(3);
  });
});
