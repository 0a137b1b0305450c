/** Private files and directories: made 0600 and 0700, replaced whole, never followed through a link. */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchownSync,
  fsync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  type Stats,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { type FileHandle, lstat, open, readdir, rmdir, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { errorCode } from '../core/errors.js';

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_RDWR } = constants;

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

/** Permission bits that let somebody else change what is in a directory. */
const WRITABLE_BY_OTHERS = 0o022;

/** The start of a temporary file's name. No resource file and no `Name` begins with a dot. */
const TEMPORARY_PREFIX = '.tmp-';

/** No other process has had it: what a writer that was killed has left stands in nobody's way. */
const ownEnding = randomBytes(8).toString('hex');
let endings = 0;

function uniqueEnding(): string {
  endings += 1;
  return `${ownEnding}-${endings}`;
}

export function isTemporary(fileName: string): boolean {
  return fileName.startsWith(TEMPORARY_PREFIX);
}

/**
 * Removes what writers that were killed have left of `name`, or of any file in the directory. For
 * whoever alone writes there: a write under way would fail. What cannot be removed stays.
 */
export async function removeTemporary(dir: string, name = ''): Promise<void> {
  const prefix = `${TEMPORARY_PREFIX}${name}`;
  const left = (await readdir(dir)).filter((file) => file.startsWith(prefix));
  await Promise.allSettled(left.map((file) => unlink(join(dir, file))));
}

/**
 * Opens an existing file of ours. A symbolic link, a directory, a device, a FIFO (without waiting
 * for its other end: O_NONBLOCK, open(2)) or a file with a second name is refused.
 */
export async function openRegular(
  path: string,
  access: 'read' | 'write',
  maxNames = 1,
): Promise<FileHandle> {
  const flags = access === 'read' ? O_RDONLY : O_RDWR;
  const handle = await open(path, flags | O_NOFOLLOW | O_NONBLOCK);
  try {
    requireOrdinary(path, await handle.stat(), maxNames);
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** @throws Error for what an open descriptor of `path` shows to be no file of ours alone */
export function requireOrdinary(path: string, found: Stats, maxNames = 1): void {
  if (!found.isFile()) throw new Error(`${path} is not a regular file`);
  // 0: removed or replaced since it was opened. The descriptor still reads what was there.
  if (found.nlink > maxNames) throw new Error(`${path} has ${found.nlink} names (hard links)`);
}

/** Opens a file of ours for writing, or makes it: durably, unless its caller syncs the directory. */
export async function openOrCreate(path: string, options: WriteOptions = {}): Promise<FileHandle> {
  const { sync = true } = options;
  try {
    return await openRegular(path, 'write');
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error;
  }
  try {
    const handle = await createPrivate(path);
    if (sync) await syncDirectory(dirname(path));
    return handle;
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error;
    return openRegular(path, 'write');
  }
}

/** Makes a file that must not exist yet. It belongs to the owner of its directory. */
export async function createPrivate(path: string): Promise<FileHandle> {
  const handle = await open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
  try {
    await handOver(handle, dirname(path));
    return handle;
  } catch (error) {
    await handle.close();
    await unlink(path);
    throw error;
  }
}

/** A descriptor of such a file, made at once: see `writeFileAtomic`. */
export function createNow(path: string): number {
  const fd = openSync(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, FILE_MODE);
  try {
    const owner = ownerAbove(path);
    if (owner) fchownSync(fd, owner.uid, owner.gid);
    return fd;
  } catch (error) {
    closeSync(fd);
    unlinkSync(path);
    throw error;
  }
}

/** Reads a whole file of ours; one that is larger than `maxBytes` is refused. */
export async function readRegular(path: string, maxBytes: number, maxNames = 1): Promise<Buffer> {
  await using handle = await openRegular(path, 'read', maxNames);
  const { size } = await handle.stat();
  if (size > maxBytes) throw new Error(`${path} holds ${size} bytes, more than ${maxBytes}`);
  return handle.readFile();
}

export interface WriteOptions {
  /**
   * Whether the content and the name survive a power cut once the promise resolves. Default true.
   * `content`: the content alone, so that what had the name before is never followed by half a file.
   */
  readonly sync?: boolean | 'content';
}

/**
 * Replaces a file, or makes it: readers see the old content or the new, whole. On failure the old
 * one stands and no temporary file is left.
 *
 * What the page cache answers is done at once, since the way to a thread and back costs several
 * times as much and a terminal is created by some twenty such steps; only what waits for the disk
 * is left to a thread.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: WriteOptions = {},
): Promise<void> {
  const { sync = true } = options;
  const temporary = join(dirname(path), `${TEMPORARY_PREFIX}${basename(path)}-${uniqueEnding()}`);
  const file = createNow(temporary);
  try {
    try {
      writeFileSync(file, data);
      if (sync) await toDisk(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw error;
  }
  if (sync === true) await syncDirectory(dirname(path));
}

const toDisk = promisify(fsync);

/** Syncs of directories by path: those under way, and those that begin when one has ended. */
const running = new Map<string, Promise<void>>();
const waiting = new Map<string, Promise<void>>();

/**
 * Makes names in a directory durable: made, renamed and removed ones (fsync(2), Notes). One sync of
 * a directory runs at a time. Who asks meanwhile shares the one that follows it, as the running one
 * may have missed what they made.
 */
export function syncDirectory(path: string): Promise<void> {
  const shared = waiting.get(path);
  if (shared) return shared;
  const before = running.get(path)?.catch(() => undefined) ?? Promise.resolve();
  const next = before.then(() => {
    waiting.delete(path);
    const sync = syncDirectoryNow(path).finally(() => {
      if (running.get(path) === sync) running.delete(path);
    });
    running.set(path, sync);
    return sync;
  });
  waiting.set(path, next);
  return next;
}

async function syncDirectoryNow(path: string): Promise<void> {
  const directory = openSync(path, O_RDONLY | O_DIRECTORY);
  try {
    await toDisk(directory);
  } finally {
    closeSync(directory);
  }
}

/**
 * Makes a directory, 0700, with its parents where they are missing. One that is there already
 * keeps its mode but must be safe: no link, ours, and not writable by others.
 */
export async function ensurePrivateDir(path: string): Promise<void> {
  if (!isSafeDirectory(path)) {
    if (await createPrivateDir(path)) return;
    isSafeDirectory(path);
  }
  // What somebody puts into it is no safer than it is itself.
  await beingMade.get(path);
}

/** Directories that are there, and whose names are on their way to the disk. */
const beingMade = new Map<string, Promise<void>>();

/** Makes a directory, 0700, with its parents. False when something of that name is there already. */
export async function createPrivateDir(path: string): Promise<boolean> {
  try {
    mkdirSync(path, DIRECTORY_MODE);
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    if (errorCode(error) !== 'ENOENT' || dirname(path) === path) throw error;
    await ensurePrivateDir(dirname(path));
    return createPrivateDir(path);
  }
  try {
    giveDirectory(path);
    const named = syncDirectory(dirname(path));
    beingMade.set(path, named);
    await named.finally(() => beingMade.delete(path));
  } catch (error) {
    // One that was not handed over would shut its owner out.
    await rmdir(path).catch(() => undefined);
    throw error;
  }
  return true;
}

function giveDirectory(path: string): void {
  const owner = ownerAbove(path);
  if (!owner) return;
  const directory = openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  try {
    fchownSync(directory, owner.uid, owner.gid);
  } finally {
    closeSync(directory);
  }
}

/** A directory itself, not a link to one. */
export async function requireDirectory(path: string): Promise<Stats> {
  const found = await lstat(path);
  if (!found.isDirectory()) throw new Error(`${path} is not a directory`);
  return found;
}

/**
 * False where there is nothing. Nobody but root, ourselves and the owner of the directory above may
 * be able to change what a directory holds.
 * @throws Error that says what is wrong
 */
function isSafeDirectory(path: string): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  const { uid } = requireUnshared(path, found);
  const owners = [0, process.geteuid?.(), statSync(dirname(path)).uid];
  if (owners.includes(uid)) return true;
  throw new Error(`${path} belongs to user ${uid}, who could replace what is in it`);
}

/** A directory in which only its owner may make, rename and remove. */
export async function requireUnsharedDirectory(path: string): Promise<Stats> {
  return requireUnshared(path, await lstat(path));
}

function requireUnshared(path: string, found: Stats): Stats {
  if (!found.isDirectory()) throw new Error(`${path} is not a directory`);
  if ((found.mode & WRITABLE_BY_OTHERS) === 0) return found;
  throw new Error(`${path} is writable by others; take that away (chmod go-w)`);
}

async function handOver(handle: FileHandle, directory: string): Promise<void> {
  const owner = ownerAbove(join(directory, 'it'));
  if (owner) await handle.chown(owner.uid, owner.gid);
}

/**
 * Whom a new file is given to: root works for the owner of the directory it writes in, since the
 * service user that the server runs as must be able to read what the supervisor wrote.
 */
function ownerAbove(path: string): { readonly uid: number; readonly gid: number } | undefined {
  if (process.geteuid?.() !== 0) return undefined;
  const { uid, gid } = statSync(dirname(path));
  return uid === 0 ? undefined : { uid, gid };
}
