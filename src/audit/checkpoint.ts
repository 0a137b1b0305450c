/** Checkpoints: lines of the trail, signed, that vouch for every line before them. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { readRegular, writeFileAtomic } from '../store/files.js';
import type { SignedDraft } from './chain.js';

export const KEY_FILE = 'checkpoint.key';
export const PUBLIC_KEY_FILE = 'checkpoint.pub';

const MAX_KEY_BYTES = 4096;

/** The key of a trail, Ed25519 (RFC 8032), used for nothing else. */
export interface CheckpointKey {
  readonly id: string;
  sign(text: string): string;
}

/** Reads the key of a trail, or makes it, with its public half beside it for whoever verifies. */
export async function openCheckpointKey(dir: string): Promise<CheckpointKey> {
  const key = await readOrMake(join(dir, KEY_FILE));
  const publicKey = createPublicKey(key);
  await publish(join(dir, PUBLIC_KEY_FILE), publicKey.export({ type: 'spki', format: 'pem' }));
  return {
    id: keyId(publicKey),
    sign: (text) => sign(null, Buffer.from(text), key).toString('base64url'),
  };
}

async function readOrMake(path: string): Promise<KeyObject> {
  try {
    return createPrivateKey(await readRegular(path, MAX_KEY_BYTES));
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  const { privateKey } = generateKeyPairSync('ed25519');
  await writeFileAtomic(path, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  return privateKey;
}

/** Written only where it is missing or another: there may be no room. */
async function publish(path: string, pem: string | Buffer): Promise<void> {
  try {
    if ((await readRegular(path, MAX_KEY_BYTES)).equals(Buffer.from(pem))) return;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  await writeFileAtomic(path, pem);
}

export async function readPublicKey(path: string): Promise<KeyObject> {
  const key = createPublicKey(await readRegular(path, MAX_KEY_BYTES));
  if (key.asymmetricKeyType === 'ed25519') return key;
  throw new Error(`${path} holds no Ed25519 key`);
}

/** SHA-256 of the public key's DER form, hex. */
export function keyId(publicKey: KeyObject): string {
  return createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

/** `final`: the server ended in order, and nothing but the next start may follow. */
export function draftCheckpoint(key: CheckpointKey, timeMs: number, final: boolean): SignedDraft {
  return {
    body: ({ file, offset }) =>
      JSON.stringify({
        record: 'checkpoint',
        time_ms: timeMs,
        file,
        offset,
        key: key.id,
        ...(final && { final }),
      }),
    sign: key.sign,
  };
}

/** What a checkpoint says, once its signature has been verified or not. */
export interface Checkpoint {
  readonly seq: number;
  readonly timeMs: number;
  readonly file: string;
  /** Bytes of the file before it. A hint: it was right when the line was written. */
  readonly offset: number;
  readonly key: string;
  readonly final: boolean;
}

/** Undefined when the text is no checkpoint. The signature is not looked at. */
export function parseCheckpoint(line: string): Checkpoint | undefined {
  let value: Partial<Record<string, unknown>>;
  try {
    value = JSON.parse(line) ?? {};
  } catch {
    return undefined;
  }
  const { seq, record, time_ms: timeMs, file, offset, key, final } = value;
  if (record !== 'checkpoint' || typeof seq !== 'number' || typeof timeMs !== 'number') {
    return undefined;
  }
  if (typeof file !== 'string' || typeof offset !== 'number' || typeof key !== 'string') {
    return undefined;
  }
  return { seq, timeMs, file, offset, key, final: final === true };
}

const SIGNATURE = /,"signature":"([\w-]{86})"\}\n?$/;

/** Whether the key signed exactly this line. */
export function isSigned(line: string, publicKey: KeyObject): boolean {
  const found = SIGNATURE.exec(line);
  const text = found?.[1];
  if (!found || text === undefined) return false;
  const signature = Buffer.from(text, 'base64url');
  // The last character has bits that no byte takes: only one spelling of a signature counts.
  if (signature.toString('base64url') !== text) return false;
  return verify(null, Buffer.from(`${line.slice(0, found.index)}}`), publicKey, signature);
}
