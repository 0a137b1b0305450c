/** Where the supervisor's socket may be: a path that fits, in a directory that nobody else can enter. */
import { lstat } from 'node:fs/promises';
import { dirname, isAbsolute } from 'node:path';
import { fieldInvalid } from '../../core/errors.js';

/** sun_path has 108 bytes, the last a NUL (unix(7)). Node.js cuts a longer path and uses another one. */
const MAX_PATH_BYTES = 107;

/** Permission bits of everybody but the owner. */
const OTHERS = 0o077;

/**
 * The directory is the guard: Node.js cannot ask for the uid of the other end (SO_PEERCRED), so
 * whoever can reach the socket is taken for the server or the supervisor. Hence nobody but the
 * directory's owner and root may enter it, and its owner is ourselves or, for root, whom it serves.
 * @throws FIELD_INVALID
 */
export async function checkSocketPath(path: string): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (!isAbsolute(path)) throw fieldInvalid('socket', `${path} must be absolute`);
  if (bytes > MAX_PATH_BYTES) {
    throw fieldInvalid(
      'socket',
      `${path} has ${bytes} bytes; the kernel allows ${MAX_PATH_BYTES}: use a shorter state directory or socket path`,
    );
  }
  const directory = dirname(path);
  const found = await lstat(directory).catch((error: unknown) => {
    throw fieldInvalid('socket', `${directory} cannot be looked at (${String(error)})`);
  });
  if (!found.isDirectory()) throw fieldInvalid('socket', `${directory} is no directory`);
  if ((found.mode & OTHERS) !== 0) {
    throw fieldInvalid(
      'socket',
      `${directory} can be entered by others, who could then command every terminal: chmod 700 it`,
    );
  }
  const uid = process.geteuid?.() ?? 0;
  if (uid !== 0 && found.uid !== uid) {
    throw fieldInvalid('socket', `${directory} belongs to user ${found.uid}, not to ${uid}`);
  }
}
