/** Verifies a trail: the chain line by line, each signature, and that nothing vouched for is missing. */
import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { ChainCheck, type Evidence, type Verdict } from './chainCheck.js';
import { PUBLIC_KEY_FILE, readPublicKey } from './checkpoint.js';
import { readTrail, type TrailLine } from './reading.js';
import { readHead } from './recovery.js';
import { HEAD_FILE } from './trailFiles.js';

export interface VerifyOptions {
  /** A checkpoint that was kept elsewhere, the whole line. Absent: the one in HEAD. */
  readonly head?: string;
  /** File of a public key that was kept elsewhere. Absent: the one beside the trail. */
  readonly keyFile?: string;
}

/** Reads the whole trail once. @throws only what keeps it from being read */
export async function verifyTrail(dir: string, options: VerifyOptions = {}): Promise<Verdict> {
  // Before the lines, so that a server that goes on writing is not taken for one that lost some.
  const head = options.head ?? (await readHead(dir));
  const publicKey = await keyOf(dir, options.keyFile);
  return verifyLines(readTrail(dir), {
    ...(publicKey && { publicKey }),
    ...(head !== undefined && { head }),
    headName: options.head === undefined ? HEAD_FILE : '--head',
  });
}

export async function verifyLines(
  lines: AsyncIterable<TrailLine>,
  evidence: Evidence,
): Promise<Verdict> {
  const check = new ChainCheck(evidence.publicKey, evidence.head, evidence.headName);
  for await (const line of lines) {
    if (!check.take(line)) break;
  }
  return check.end();
}

async function keyOf(dir: string, keyFile: string | undefined): Promise<KeyObject | undefined> {
  try {
    return await readPublicKey(keyFile ?? join(dir, PUBLIC_KEY_FILE));
  } catch (error) {
    if (keyFile === undefined && errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}
