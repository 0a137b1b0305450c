/** Whom the children run as: the three isolation modes and what each refuses. */
import { fieldInvalid } from '../core/errors.js';
import type { Name } from '../core/names.js';
import { type Account, accountByUid } from '../pty/owner.js';
import { parseOwnerUid, type RunAs } from '../pty/runAs.js';

/**
 * - `by-uid`: the supervisor is root and an owner is a uid of at least `minUid`; children run as it,
 *   with its groups and without new privileges. Never falls back to root.
 * - `fixed-user`: children run as one configured unprivileged user, whatever the owner.
 * - `shared-uid`: children run as the supervisor's own user and can reach its files and keys; so
 *   there is one owner only, unless `owners` is `any`.
 */
export type Isolation =
  | { readonly mode: 'by-uid'; readonly minUid: number }
  | { readonly mode: 'fixed-user'; readonly uid: number }
  | { readonly mode: 'shared-uid'; readonly owners: Name | 'any' };

/** The account whose shell, home and name a child gets, and the switch to it where one is needed. */
export interface ChildIdentity {
  readonly account: Account;
  readonly runAs?: RunAs;
}

/** @throws FIELD_INVALID for an owner that this mode does not serve */
export async function childIdentity(isolation: Isolation, owner: Name): Promise<ChildIdentity> {
  switch (isolation.mode) {
    case 'by-uid': {
      const uid = parseOwnerUid(owner, isolation.minUid);
      return switched(uid);
    }
    case 'fixed-user':
      return switched(isolation.uid);
    case 'shared-uid': {
      if (isolation.owners !== 'any' && isolation.owners !== owner) {
        throw fieldInvalid(
          'owner',
          `children run as the server's own user here, which serves the one owner ${isolation.owners}`,
        );
      }
      return { account: await accountByUid(process.getuid?.() ?? 0) };
    }
  }
}

async function switched(uid: number): Promise<ChildIdentity> {
  const account = await accountByUid(uid);
  return { account, runAs: { uid, ...(account.gid !== undefined && { gid: account.gid }) } };
}
