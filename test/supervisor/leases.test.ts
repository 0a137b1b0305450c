import { Leases } from '../../src/supervisor/leases.js';

describe('leases', () => {
  it('hold until their end', () => {
    let now = 1_000;
    const leases = new Leases(() => now);
    const lease = { id: 'a', notAfter: 2_000 };
    expect(leases.refusal(lease)).toBeUndefined();
    now = 2_000;
    expect(leases.refusal(lease)?.reason).toBe('TOKEN_EXPIRED');
    expect(() => leases.check(lease)).toThrow('expired');
  });

  it('are refused for as long as any lease can last once fenced, and others are not', () => {
    let now = 0;
    const leases = new Leases(() => now);
    leases.fence(['a', 'b']);
    const notAfter = 3_630_000;
    now = 3_600_000;
    leases.fence(['c']);
    for (const id of ['a', 'b', 'c']) {
      expect(leases.refusal({ id, notAfter })?.reason).toBe('GRANT_REVOKED');
    }
    expect(leases.refusal({ id: 'd', notAfter })).toBeUndefined();
  });
});
