/** Paths looked up with the rights of another user, as the kernel would for it (path_resolution(7)). */
import { accessSync, constants, lstatSync, readlinkSync, type Stats } from 'node:fs';
import { access, lstat, readlink } from 'node:fs/promises';
import { localPaths } from './localPaths.js';
import { accountByUid, supplementaryGroups } from './owner.js';
import type { RunAs } from './runAs.js';

/** Whose rights are asked about. */
export interface Identity {
  readonly uid: number;
  readonly groups: ReadonlySet<number>;
}

export interface FoundFile {
  /** Absolute, without symbolic links. */
  readonly realPath: string;
  readonly stats: Stats;
}

/** Links followed in one look-up before it counts as a loop, as in Linux. */
const MAX_LINKS = 40;

export async function identityOf({ uid, gid }: RunAs): Promise<Identity> {
  if (gid === undefined) return { uid, groups: new Set([uid]) };
  const { name } = await accountByUid(uid);
  return { uid, groups: new Set([gid, ...(await supplementaryGroups(name))]) };
}

/**
 * Follows `path`, absolute, through directories that `identity` may search; undefined: this process.
 * Rights are those of the mode bits: an access control list that grants more is not seen. What may
 * stand still is looked at in a thread, step by step.
 * @throws errors with a code: ENOENT, ENOTDIR, ELOOP, EACCES
 */
export async function findFile(path: string, identity: Identity | undefined): Promise<FoundFile> {
  const isLocal = localPaths();
  const look = (at: string) => (isLocal(at) ? lstatSync(at) : lstat(at));
  let real = '';
  let stats = await look('/');
  const rest = segments(path).reverse();
  for (let links = 0, segment = rest.pop(); segment !== undefined; segment = rest.pop()) {
    if (!stats.isDirectory()) throw failure('ENOTDIR');
    if (identity && !(await mayExecute(real || '/', stats, identity))) throw failure('EACCES');
    const next =
      segment === '..' ? real.slice(0, Math.max(0, real.lastIndexOf('/'))) : `${real}/${segment}`;
    stats = await look(next || '/');
    if (!stats.isSymbolicLink()) {
      real = next;
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) throw failure('ELOOP');
    const target = isLocal(next) ? readlinkSync(next) : await readlink(next);
    rest.push(...segments(target).reverse());
    if (target.startsWith('/')) real = '';
    stats = await look(real || '/');
  }
  return { realPath: real || '/', stats };
}

/** Whether the file may be executed, or the directory searched. */
export async function mayExecute(
  path: string,
  stats: Stats,
  identity: Identity | undefined,
): Promise<boolean> {
  try {
    // Also for another identity: it fails on a file system mounted noexec.
    if (localPaths()(path)) accessSync(path, constants.X_OK);
    else await access(path, constants.X_OK);
  } catch {
    return false;
  }
  if (!identity) return true;
  const shift = stats.uid === identity.uid ? 6 : identity.groups.has(stats.gid) ? 3 : 0;
  return ((stats.mode >> shift) & 1) === 1;
}

function segments(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '' && segment !== '.');
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
