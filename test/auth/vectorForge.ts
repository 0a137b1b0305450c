/** Forges the tokens of the vectors: sound ones, and ones that are wrong in exactly one way. */
import { signEd25519, type VectorKey, vectorKey } from './vectorKeys.js';

/** Seconds: the clock of every vector that does not say otherwise. */
export const NOW = 1735689600;

export const AUDIENCE = 'https://grantty.test';
export const ISSUER = 'https://issuer.test';
export const OTHER_ISSUER = 'https://other.test';

export const key = vectorKey('grantty test vectors: first key');
export const otherKey = vectorKey('grantty test vectors: key of another issuer');
export const strangerKey = vectorKey('grantty test vectors: key that no issuer has');

/** Characters of an Ed25519 signature in base64url, and the two dots. */
const SIGNATURE_AND_DOTS = 86 + 2;

export type Members = Readonly<Record<string, unknown>>;

/** Members with the value undefined are left out of the JSON. */
export const soundHeader: Members = { alg: 'EdDSA', typ: 'at+jwt', kid: 'ed' };

export const soundGrant: Members = {
  type: 'urn:grantty:terminal:v1',
  id: 'g1',
  actions: ['terminal.read', 'terminal.write'],
  resource: { owner: '1000', agent: 'coder', session: 'default', terminal: '*' },
};

export const soundClaims: Members = {
  iss: ISSUER,
  sub: 'alice',
  client_id: 'orchestrator',
  aud: AUDIENCE,
  iat: NOW,
  nbf: NOW,
  exp: NOW + 600,
  jti: 'token-1',
  authorization_details: [soundGrant],
};

export function base64url(content: string | Uint8Array): string {
  return Buffer.from(content).toString('base64url');
}

/** A token of these very texts, signed. */
export function signed(header: string, payload: string | Uint8Array, by: VectorKey = key): string {
  const text = `${base64url(header)}.${base64url(payload)}`;
  return `${text}.${signEd25519(by, text)}`;
}

/** The sound token with some members of its header changed. */
export function withHeader(changes: Members): string {
  return signed(JSON.stringify({ ...soundHeader, ...changes }), JSON.stringify(soundClaims));
}

/** The sound token with some claims changed. */
export function withClaims(changes: Members): string {
  return signed(JSON.stringify(soundHeader), JSON.stringify({ ...soundClaims, ...changes }));
}

/** The sound token with a payload of another text. */
export function withPayload(payload: string | Uint8Array): string {
  return signed(JSON.stringify(soundHeader), payload);
}

/** The sound token with some members of its grant changed. */
export function withGrant(changes: Members): string {
  return withClaims({ authorization_details: [{ ...soundGrant, ...changes }] });
}

export function withResource(changes: Members): string {
  return withGrant({ resource: { ...(soundGrant.resource as Members), ...changes } });
}

export function withConstraints(constraints: unknown): string {
  return withGrant({ constraints });
}

/** A sound token of exactly so many bytes: a claim that nobody knows fills it up. */
export function ofSize(bytes: number): string {
  for (const alg of ['EdDSA', 'Ed25519']) {
    const header = JSON.stringify({ ...soundHeader, alg });
    for (let length = 0; length < bytes; length += 1) {
      const payload = JSON.stringify({ ...soundClaims, filler: 'x'.repeat(length) });
      const unsigned = base64url(header).length + base64url(payload).length;
      if (unsigned + SIGNATURE_AND_DOTS === bytes) return signed(header, payload);
    }
  }
  throw new Error(`no filler makes a token of ${bytes} bytes`);
}

/** Replaces one of the three parts of a token. */
export function replacePart(token: string, index: 0 | 1 | 2, change: (part: string) => string) {
  return token
    .split('.')
    .map((part, at) => (at === index ? change(part) : part))
    .join('.');
}
