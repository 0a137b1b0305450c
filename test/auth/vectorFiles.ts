/** The files of test/vectors/tokens as they must be, and what the tests read out of them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { acceptedVectors } from './acceptedVectors.js';
import { decisionVectors } from './decisionVectors.js';
import { madeOnce } from './madeOnce.js';
import { refusedVectors } from './refusedVectors.js';
import { AUDIENCE, ISSUER, key, OTHER_ISSUER, otherKey } from './vectorForge.js';

const FOLDER = new URL('../vectors/tokens/', import.meta.url);

const issuers = {
  audience: AUDIENCE,
  issuers: {
    [ISSUER]: {
      keys: [
        { ...key.publicJwk, kid: 'ed' },
        { ...key.publicJwk, kid: 'eddsa-only', alg: 'EdDSA', use: 'sig' },
        { ...madeOnce.ES256.publicJwk, kid: 'ec', alg: 'ES256' },
        { ...madeOnce.RS256.publicJwk, kid: 'rsa', key_ops: ['verify'] },
      ],
    },
    [OTHER_ISSUER]: { keys: [{ ...otherKey.publicJwk, kid: 'other' }] },
  },
};

const files = {
  'issuers.json': issuers,
  'refused.json': refusedVectors,
  'accepted.json': acceptedVectors,
  'decisions.json': decisionVectors,
};

export type VectorFile = keyof typeof files;
export const vectorFileNames = Object.keys(files) as readonly VectorFile[];

export function vectorFileText(name: VectorFile): string {
  return `${JSON.stringify(files[name], null, 2)}\n`;
}

export function readVectorFile(name: VectorFile): string {
  return readFileSync(new URL(name, FOLDER), 'utf8');
}

export function writeVectorFiles(): void {
  for (const name of vectorFileNames) writeFileSync(new URL(name, FOLDER), vectorFileText(name));
}
