import { rememberedToken, unverifiedExpiry } from '../../src/client/token.js';

function jwt(exp: unknown): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'EdDSA' })}.${part({ exp })}.signature`;
}

describe('a remembered token', () => {
  it('is read once until a minute before it ends', async () => {
    let now = 0;
    let reads = 0;
    const token = rememberedToken(
      async () => {
        reads += 1;
        return jwt(reads * 600);
      },
      () => now,
    );
    expect(await token()).toBe(jwt(600));
    now = 539_999;
    expect(await token()).toBe(jwt(600));
    expect(reads).toBe(1);
    now = 540_000;
    expect(await token()).toBe(jwt(1200));
    expect(reads).toBe(2);
  });

  it.each(['opaque', jwt('soon'), 'a.b.c', ''])(
    'is read anew each time when %j is all',
    async (text) => {
      let reads = 0;
      const token = rememberedToken(async () => {
        reads += 1;
        return text;
      });
      await token();
      await token();
      expect(reads).toBe(2);
      expect(unverifiedExpiry(text)).toBeUndefined();
    },
  );

  it('serves to its very end when nothing newer can be had', async () => {
    let fail = false;
    let now = 0;
    const token = rememberedToken(
      async () => {
        if (fail) throw new Error('no file');
        return jwt(600);
      },
      () => now,
    );
    await token();
    fail = true;
    now = 599_999;
    expect(await token()).toBe(jwt(600));
    now = 600_000;
    await expect(token()).rejects.toThrow('no file');
  });
});
