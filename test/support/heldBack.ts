/** A command that runs until a test lets it go, in place of a sleep that might be too short or too long. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface HeldBack extends AsyncDisposable {
  /** argv: prints nothing, reads nothing of its terminal, and ends with 0. */
  readonly command: readonly string[];
  /** Resolves when the command, which has begun or is about to, has been let go. */
  letGo(): Promise<void>;
}

export async function heldBack(): Promise<HeldBack> {
  const dir = await mkdtemp(join(tmpdir(), 'grantty-held-'));
  const fifo = join(dir, 'fifo');
  execFileSync('mkfifo', [fifo]);
  return {
    command: ['cat', fifo],
    // Opened to write, a FIFO waits for its reader (fifo(7)), which then reads its end.
    letGo: async () => (await open(fifo, 'w')).close(),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true }),
  };
}
