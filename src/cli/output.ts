/** Standard output: bytes with back-pressure, lines for programs, and a reader that went away. */
import { once } from 'node:events';
import { errorCode } from '../core/errors.js';

/** Thrown where the reader of standard output has closed it (EPIPE): it has had enough. */
export class OutputClosed extends Error {
  override readonly name = 'OutputClosed';
}

/** Why nothing can be written any more. */
let failure: Error | undefined;
let isTold = false;

/** Lets a broken pipe end the command quietly, and a full disk with a word. Called once. */
export function watchOutput(): void {
  process.stdout.on('error', (error) => {
    failure ??=
      errorCode(error) === 'EPIPE'
        ? new OutputClosed()
        : new Error(`standard output cannot be written: ${error.message}`);
  });
  // Nobody can be told that standard error is gone.
  process.stderr.on('error', () => {});
}

/** Resolves when more may be written. @throws OutputClosed, Error that says why it cannot be */
export async function writeBytes(bytes: Uint8Array | string): Promise<void> {
  throwFailure();
  if (process.stdout.write(bytes)) return;
  await once(process.stdout, 'drain').catch(() => {});
  throwFailure();
}

function throwFailure(): void {
  if (failure === undefined) return;
  isTold = true;
  throw failure;
}

export async function writeLine(text: string): Promise<void> {
  await writeBytes(`${text}\n`);
}

export function note(text: string): void {
  process.stderr.write(`ctx: ${text}\n`);
}

/**
 * Resolves when what was written has left the process.
 * @throws Error that says why it cannot leave it, unless that has been thrown before
 */
export async function flushOutput(): Promise<void> {
  // The error of the last write comes a moment after it.
  await new Promise((resolve) => setImmediate(resolve));
  if (failure === undefined && process.stdout.writableLength > 0) {
    await new Promise<void>((resolve) => {
      process.stdout.once('error', () => resolve());
      process.stdout.write('', () => resolve());
    });
  }
  if (!isTold && !(failure instanceof OutputClosed)) throwFailure();
}
