/** Where the bearer token of a connection comes from, and when it has to be read again. */

/** Milliseconds before a token's end from which on it is read again for every call. */
const RENEWAL_MARGIN_MS = 60_000;

/**
 * Remembers what `read` gave until shortly before it expires, so that a token file or command is
 * not asked for each call. A token whose end cannot be told is read anew each time.
 */
export function rememberedToken(
  read: () => Promise<string>,
  now: () => number = Date.now,
): () => Promise<string> {
  let token: string | undefined;
  let goodUntil = 0;
  return async () => {
    if (token !== undefined && now() < goodUntil) return token;
    token = await read();
    goodUntil = (unverifiedExpiry(token) ?? 0) - RENEWAL_MARGIN_MS;
    return token;
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
