/** Where the JWK set of an issuer comes from: a file, a URL, or this process itself. */
import { readFile } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { fileFailure } from '../core/fileFailure.js';

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

/** @throws Error that says what the system or the network had against it; its cause, what they said */
export async function readJwks(source: JwksSource): Promise<string> {
  if ('jwks' in source) return JSON.stringify(source.jwks);
  if ('jwksFile' in source) {
    return readFile(source.jwksFile, 'utf8').catch((cause: unknown) => {
      throw new Error(`cannot be read: ${fileFailure(cause)}`, { cause });
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
    throw new Error(`cannot be fetched: ${networkFailure(cause)}`, { cause });
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

const networkReasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'no such host is known',
  EAI_AGAIN: 'the name of the host could not be looked up',
  EHOSTUNREACH: 'there is no way to the host',
  ENETUNREACH: 'there is no way to the network',
  ECONNRESET: 'the connection was cut',
};

/** In a line: what `fetch` throws hides the reason in its causes, and may have no words for it. */
function networkFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError') return `no whole answer within ${FETCH_TIMEOUT_MS / 1000} s`;
  const reason = networkReasons[errorCode(error) ?? ''];
  if (reason !== undefined) return reason;
  return error.cause === undefined ? error.message || error.name : networkFailure(error.cause);
}
