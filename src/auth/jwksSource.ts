/** Where the JWK set of an issuer comes from: a file, a URL, or this process itself. */
import { readFile } from 'node:fs/promises';

export type JwksSource =
  /** Path of a file. */
  | { readonly jwksFile: string }
  /** `https:`, or `http:` to this host. */
  | { readonly jwksUrl: string }
  /** The set itself, which does not change. */
  | { readonly jwks: object };

/** Bytes of a set; an issuer has a handful of keys, of less than 1 KiB each. */
const MAX_SET_BYTES = 256 * 1024;

/** Milliseconds for the whole answer. */
const FETCH_TIMEOUT_MS = 5_000;

/** For the operator: where it comes from. */
export function sourceName(source: JwksSource): string {
  if ('jwksFile' in source) return source.jwksFile;
  return 'jwksUrl' in source ? source.jwksUrl : 'this server';
}

/** @throws Error whose cause says what the system or the network had against it */
export async function readJwks(source: JwksSource): Promise<string> {
  if ('jwks' in source) return JSON.stringify(source.jwks);
  if ('jwksFile' in source) {
    return readFile(source.jwksFile, 'utf8').catch((cause: unknown) => {
      throw new Error('cannot be read', { cause });
    });
  }
  return fetchText(source.jwksUrl);
}

/** A redirection is an error: who may say what the keys are is what the operator wrote down. */
async function fetchText(url: string): Promise<string> {
  const response = await fetch(url, {
    redirect: 'error',
    headers: { accept: 'application/jwk-set+json, application/json' },
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
  }).catch((cause: unknown) => {
    throw new Error('cannot be fetched', { cause });
  });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new Error(`cannot be fetched: HTTP status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body) {
    size += chunk.byteLength;
    if (size > MAX_SET_BYTES) throw new Error(`is larger than ${MAX_SET_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
