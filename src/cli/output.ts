/** Standard output: bytes with back-pressure, lines for programs, and a reader that went away. */
import { once } from 'node:events';
import { errorCode } from '../core/errors.js';

/** Thrown where the reader of standard output has closed it (EPIPE): it has had enough. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed';
}

let closed = false;

/** Lets a broken pipe end the command quietly instead of the process loudly. Called once. */
export function watchOutput(): void {
  process.stdout.on('error', (error) => {
    if (errorCode(error) !== 'EPIPE') throw error;
    closed = true;
  });
  // Nobody can be told that standard error is gone.
  process.stderr.on('error', () => {});
}

/** Resolves when more may be written. @throws OutputClosed */
export async function writeBytes(bytes: Uint8Array | string): Promise<void> {
  if (closed) throw new OutputClosed();
  if (process.stdout.write(bytes)) return;
  await once(process.stdout, 'drain').catch(() => {});
  if (closed) throw new OutputClosed();
}

export async function writeLine(text: string): Promise<void> {
  await writeBytes(`${text}\n`);
}

export function note(text: string): void {
  process.stderr.write(`ctx: ${text}\n`);
}

/** Resolves when what was written has left the process or can leave it no more. */
export async function flushOutput(): Promise<void> {
  if (closed || process.stdout.writableLength === 0) return;
  await new Promise<void>((resolve) => {
    process.stdout.once('error', () => resolve());
    process.stdout.write('', () => resolve());
  });
}
