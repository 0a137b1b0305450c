/** Raw mode of the terminal that standard input is, both ways. */
import { spawnSync } from 'node:child_process';

/**
 * Node.js's own raw mode leaves the output as it is processed for text (libuv sets ONLCR): each
 * line feed of a full-screen program would return the carriage too. stty(1) makes both ways raw.
 * Blocks for some milliseconds, which is what also lets it run while the process exits.
 * @returns what gives the terminal back its settings
 */
export function enterRawMode(): () => void {
  const saved = stty(['-g'])?.trim();
  if (saved !== undefined && stty(['raw', '-echo']) !== undefined) return () => void stty([saved]);
  process.stdin.setRawMode(true);
  return () => process.stdin.setRawMode(false);
}

/** What it printed; undefined when it is missing or failed. */
function stty(args: readonly string[]): string | undefined {
  const { status, stdout } = spawnSync('stty', args, {
    stdio: ['inherit', 'pipe', 'ignore'],
    encoding: 'utf8',
  });
  return status === 0 ? stdout : undefined;
}
