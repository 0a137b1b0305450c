/** Running a child as its owner: which uids may be run as, and the argv that changes to one. */
import { accessSync, constants } from 'node:fs';
import { fieldInvalid } from '../core/errors.js';

/** Whom a child runs as. Its supplementary groups are the account's; none without a gid. */
export interface RunAs {
  readonly uid: number;
  /** Of the passwd entry; absent for a uid without one, whose group is then its own number. */
  readonly gid?: number;
}

/** Exclusive. (uid_t) -1 means "leave as it is" to setuid(2) and friends: it would stay root. */
const UID_LIMIT = 4_294_967_295;

/** Other spellings of a number, such as 00 or 01000, are names to some tools and root to others. */
const UID = /^(?:0|[1-9][0-9]*)$/;

/** util-linux; looked for here and not on the server's PATH. */
const SETPRIV_PATHS = ['/usr/bin/setpriv', '/bin/setpriv', '/usr/sbin/setpriv', '/sbin/setpriv'];

/** The uid that an owner stands for. @throws FIELD_INVALID when it is none, or below `minUid` */
export function parseOwnerUid(owner: string, minUid: number): number {
  const uid = UID.test(owner) ? Number(owner) : Number.NaN;
  if (!(uid < UID_LIMIT)) {
    throw fieldInvalid('owner', `must be a uid from ${minUid} to ${UID_LIMIT - 1}, in decimal`);
  }
  if (uid < minUid) throw fieldInvalid('owner', `uids below ${minUid} are not served`);
  return uid;
}

/**
 * The beginning of an argv that runs the rest of it, as root, so that it runs as `runAs` with its
 * groups only and unable to gain privileges. setpriv(1) changes and then executes in place. It never
 * falls back: what cannot change ends with an exit code and setpriv's message as output.
 * @throws Error when setpriv is not installed, or for root
 */
export function changeUser({ uid, gid }: RunAs): string[] {
  if (!Number.isInteger(uid) || uid <= 0 || uid >= UID_LIMIT) {
    throw new Error(`children are not run as uid ${uid}`);
  }
  return [
    setprivPath(),
    `--reuid=${uid}`,
    `--regid=${gid ?? uid}`,
    gid === undefined ? '--clear-groups' : '--init-groups',
    '--no-new-privs',
    '--',
  ];
}

let foundSetpriv: string | undefined;

function setprivPath(): string {
  foundSetpriv ??= SETPRIV_PATHS.find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
  if (foundSetpriv === undefined) {
    throw new Error('setpriv (util-linux) is needed to run children as their owner');
  }
  return foundSetpriv;
}
