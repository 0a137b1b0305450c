/** Where the state is kept when nobody says so. */
import { homedir } from 'node:os';
import { join } from 'node:path';

/** As the XDG base directory specification has it for state. */
export function defaultStateDir(): string {
  const base = process.env.XDG_STATE_HOME || join(homedir(), '.local', 'state');
  return join(base, 'grantty');
}
