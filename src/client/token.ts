/** Where the bearer token of a connection comes from, and when it has to be read again. */

/** Milliseconds before a token's end from which on it is read again for every call. */
const RENEWAL_MARGIN_MS = 60_000;

/**
 * Remembers what `read` gave until shortly before it expires, so that a token file or command is
 * not asked for each call. From then on it is asked each time, and what is remembered serves as
 * long as it holds and nothing newer can be had. A token whose end cannot be told is not remembered.
 */
export function rememberedToken(
  read: () => Promise<string>,
  now: () => number = Date.now,
): () => Promise<string> {
  let remembered: { readonly token: string; readonly expiry: number } | undefined;
  return async () => {
    if (remembered && now() < remembered.expiry - RENEWAL_MARGIN_MS) return remembered.token;
    try {
      const token = await read();
      const expiry = unverifiedExpiry(token);
      remembered = expiry === undefined ? undefined : { token, expiry };
      return token;
    } catch (error) {
      if (remembered && now() < remembered.expiry) return remembered.token;
      throw error;
    }
  };
}

/**
 * The `exp` of a JWT in milliseconds since the Unix epoch. Nothing is verified: good for deciding
 * when to fetch another one, and for nothing else.
 */
export function unverifiedExpiry(token: string): number | undefined {
  try {
    const payload: unknown = JSON.parse(
      Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'),
    );
    if (typeof payload !== 'object' || payload === null || !('exp' in payload)) return undefined;
    return typeof payload.exp === 'number' ? payload.exp * 1000 : undefined;
  } catch {
    return undefined;
  }
}
