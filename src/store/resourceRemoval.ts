/** A resource's directory on its way out: hidden at once, then removed, as much of it as can be. */
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { syncDirectory } from './files.js';
import { tupleOfDir } from './paths.js';
import type { StoreLog } from './storeLog.js';

/** What a resource directory is renamed to while it is removed. No `Name` begins with a dot. */
const REMOVED_PREFIX = '.removed-';

/** Directories above a resource that go with the last one in them: of its session and its agent. */
const SHARED_LEVELS = 4;

/**
 * Removes a resource with its history, and what is empty above it up to the agent's directory. It is
 * gone from its place for good when this resolves, though some of its files may be left in a hidden
 * directory, which the next supervisor removes: so does it after a removal that was cut short.
 * @throws when it is not surely gone for good; then it is in its place again, whole
 */
export async function removeResource(dir: string, log?: StoreLog): Promise<void> {
  const doomed = await hide(dir);
  try {
    await syncDirectory(dirname(dir));
  } catch (error) {
    // Who is told that it failed must find it, to try again. Where that fails too, a restart decides.
    await rename(doomed, dir).catch((cause: unknown) =>
      log?.warn({ path: doomed, err: cause }, 'a removal that failed could not be taken back'),
    );
    throw error;
  }
  await clear(dir, doomed, log);
}

/**
 * As `removeResource`, of what nobody was told to be there: it leaves its place even where that may
 * not be for good.
 */
export async function discardResource(dir: string, log?: StoreLog): Promise<void> {
  const doomed = await hide(dir);
  await syncDirectory(dirname(dir)).catch((error: unknown) =>
    log?.warn({ path: doomed, err: error }, 'what was discarded may be back after a power cut'),
  );
  await clear(dir, doomed, log);
}

async function hide(dir: string): Promise<string> {
  const hidden = `${REMOVED_PREFIX}${basename(dir)}-${randomBytes(6).toString('hex')}`;
  const doomed = join(dirname(dir), hidden);
  await rename(dir, doomed);
  return doomed;
}

async function clear(dir: string, doomed: string, log: StoreLog | undefined): Promise<void> {
  await rm(doomed, { recursive: true }).catch((error: unknown) =>
    log?.warn({ path: doomed, err: error }, 'some of a removed terminal is left until a restart'),
  );
  if (tupleOfDir(dir)) await removeEmptyParents(dir);
}

/** The owner's directory stays, as an operator may have made it. */
async function removeEmptyParents(dir: string): Promise<void> {
  let parent = dirname(dir);
  for (let level = 0; level < SHARED_LEVELS; level += 1) {
    try {
      await rmdir(parent);
    } catch {
      // Not empty, or gone: nothing depends on it.
      return;
    }
    parent = dirname(parent);
  }
}

/** Removes what removals that were cut short have left among the terminals of a session. */
export async function clearRemoved(terminals: string, log: StoreLog | undefined): Promise<void> {
  const names = await readdir(terminals).catch(() => []);
  for (const name of names) {
    if (!name.startsWith(REMOVED_PREFIX)) continue;
    const path = join(terminals, name);
    await rm(path, { recursive: true }).catch((error: unknown) =>
      log?.warn({ path, err: error }, 'what is left of a removed terminal stays for now'),
    );
  }
}
