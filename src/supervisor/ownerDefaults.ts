/** What an owner's terminal runs, and where, when its creation does not say. */
import type { Name } from '../core/names.js';
import { resolveCommand, resolveCwd } from '../pty/command.js';
import { FALLBACK_SHELL } from '../pty/owner.js';
import type { OwnerDefaults } from './api.js';
import { childIdentity, type Isolation } from './isolation.js';

/** Login shell and home, where they are there and usable. @throws FIELD_INVALID for an owner that is not served */
export async function ownerDefaults(isolation: Isolation, owner: Name): Promise<OwnerDefaults> {
  const { account, runAs } = await childIdentity(isolation, owner);
  const shell = resolveCommand([account.shell], { path: '', cwd: '/', runAs });
  const home = resolveCwd(account.home, { cwdUnder: undefined, runAs });
  return {
    command: [
      await shell.then(
        () => account.shell,
        () => FALLBACK_SHELL,
      ),
    ],
    cwd: await home.then(
      () => account.home,
      () => '/',
    ),
  };
}
