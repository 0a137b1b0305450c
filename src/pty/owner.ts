/** Accounts of the host: login shell, home and groups of a uid, from /etc/passwd and /etc/group. */
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

export const FALLBACK_SHELL = '/bin/sh';
const FALLBACK_HOME = '/';

/**
 * What passwd(5) says of a uid. Accounts that only a directory service knows are not in it: a child
 * process would have to ask, and none may be started beside PTYs.
 */
export interface Account {
  readonly uid: number;
  /** Absent when the uid has no entry. */
  readonly gid?: number;
  readonly name: string;
  readonly home: string;
  readonly shell: string;
}

/** The account of a uid; a uid without entry is its own name, with / and /bin/sh. */
export async function accountByUid(uid: number, passwdPath = '/etc/passwd'): Promise<Account> {
  for (const account of await accounts(passwdPath)) if (account.uid === uid) return account;
  return { uid, name: String(uid), home: FALLBACK_HOME, shell: FALLBACK_SHELL };
}

/** The groups that the account is a member of beside its own (group(5)). */
export async function supplementaryGroups(
  name: string,
  groupPath = '/etc/group',
): Promise<ReadonlySet<number>> {
  const groups = new Set<number>();
  for (const [, , gid, members] of await entries(groupPath)) {
    if (isId(gid) && members?.split(',').includes(name)) groups.add(Number(gid));
  }
  return groups;
}

async function accounts(path: string): Promise<Account[]> {
  const found: Account[] = [];
  for (const [name, , uid, gid, , home, shell] of await entries(path)) {
    if (!name || !isId(uid) || !isId(gid)) continue;
    found.push({
      uid: Number(uid),
      gid: Number(gid),
      name,
      home: home?.startsWith('/') ? home : FALLBACK_HOME,
      shell: shell?.startsWith('/') ? shell : FALLBACK_SHELL,
    });
  }
  return found;
}

/** What a file said, and when: tools that change one replace it, so that its inode is another. */
interface Read {
  readonly stamp: string;
  readonly entries: readonly string[][];
}

const lastRead = new Map<string, Read>();

async function entries(path: string): Promise<readonly string[][]> {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return [];
  const stamp = [found.dev, found.ino, found.size, found.mtimeMs, found.ctimeMs].join();
  const known = lastRead.get(path);
  if (known?.stamp === stamp) return known.entries;
  const text = await readFile(path, 'utf8');
  const read = { stamp, entries: text.split('\n').map((line) => line.split(':')) };
  lastRead.set(path, read);
  return read.entries;
}

function isId(text: string | undefined): text is string {
  return text !== undefined && /^\d{1,10}$/.test(text);
}
