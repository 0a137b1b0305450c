/** The state directory as a whole: made or checked once at start, and told apart by a random id. */
import { randomBytes, randomUUID } from 'node:crypto';
import { link, realpath, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { errorCode } from '../core/errors.js';
import { fileFailure } from '../core/fileFailure.js';
import {
  createPrivateDir,
  ensurePrivateDir,
  readRegular,
  requireUnsharedDirectory,
  syncDirectory,
  writeFileAtomic,
} from './files.js';

/** Says which directory this is and how it is laid out. */
const IDENTITY_FILE = 'state_dir.json';
const MAX_IDENTITY_BYTES = 4096;
/** Its own name and, for a moment or after a crash, the one it was prepared under. */
const MAX_IDENTITY_NAMES = 2;

/** Raised when a version lays out the directory so that an earlier one would misread it. */
const LAYOUT_VERSION = 1;

export interface StateDir {
  /** Absolute, links resolved. */
  readonly path: string;
  /** Who the files belong to: the user that root hands over what it makes to. */
  readonly uid: number;
  /** Random, made with the directory: two processes that agree on it mean the same files. */
  readonly id: string;
}

const identityShape = z.object({ layout: z.int().min(1), id: z.uuid() });

/**
 * Makes the directory (0700), or checks one that is there: it may be shared ground such as /ctx and
 * keeps its mode, but nobody else may be able to write in it.
 * @throws Error that says what to do, for an unsafe directory or a later layout
 */
export async function openStateDir(path: string): Promise<StateDir> {
  if (!(await makeOrFind(path))) await requireOurs(path);
  const real = await realpath(path);
  await ensurePrivateDir(join(real, 'home'));
  const identityPath = join(real, IDENTITY_FILE);
  const { layout, id } = parseIdentity(identityPath, await readIdentity(identityPath));
  if (layout > LAYOUT_VERSION) {
    throw new Error(
      `${real} has layout ${layout}; this version knows layouts up to ${LAYOUT_VERSION}: use a later one`,
    );
  }
  return { path: real, uid: (await stat(real)).uid, id };
}

async function makeOrFind(path: string): Promise<boolean> {
  try {
    return await createPrivateDir(path);
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    throw new Error(
      `the state directory ${path} cannot be made: ${fileFailure(error)}; make it for this user, or name another`,
      { cause: error },
    );
  }
}

function parseIdentity(path: string, json: string): z.infer<typeof identityShape> {
  try {
    return identityShape.parse(JSON.parse(json));
  } catch (error) {
    throw new Error(`${path} is unsound: ${String(error)}`, { cause: error });
  }
}

/** Root works for whoever the directory belongs to; others, only in their own. */
async function requireOurs(path: string): Promise<void> {
  const { uid } = await requireUnsharedDirectory(path);
  const me = process.geteuid?.();
  if (me === 0 || uid === me) return;
  throw new Error(
    `${path} belongs to user ${uid}: serve as that user, or give another by --state-dir`,
  );
}

async function readIdentity(path: string): Promise<string> {
  const read = async () =>
    (await readRegular(path, MAX_IDENTITY_BYTES, MAX_IDENTITY_NAMES)).toString();
  try {
    return await read();
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  await publishIdentity(path);
  return read();
}

/** Of two processes that make one at the same time, the first wins: link(2) replaces nothing. */
async function publishIdentity(path: string): Promise<void> {
  const mine = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFileAtomic(mine, `${JSON.stringify({ layout: LAYOUT_VERSION, id: randomUUID() })}\n`);
  try {
    await link(mine, path);
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
  } finally {
    await unlink(mine);
  }
  await syncDirectory(join(path, '..'));
}
