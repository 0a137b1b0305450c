/** Where the state is kept when nobody says so. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

/** GRANTTY_STATE_DIR, which the file that `serve --dev` prints sets; else as the XDG specification has it. */
export function defaultStateDir(): string {
  if (process.env.GRANTTY_STATE_DIR) return resolve(process.env.GRANTTY_STATE_DIR);
  const base = process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state');
  return join(base, 'grantty');
}
