/** The person's terminal while it is lent to another one: raw, and given back whatever happens. */
import { writeSync } from 'node:fs';
import { enterRawMode } from './rawMode.js';
import { ScreenModes } from './screenModes.js';
import type { Size } from './values.js';

/** Of the terminal that standard output is; undefined where it is none. */
export function windowSize(): Size | undefined {
  const { isTTY, columns, rows } = process.stdout;
  return isTTY && columns > 0 && rows > 0 ? { columns, rows } : undefined;
}

/**
 * Raw from construction to disposal where standard input is a terminal. Given back at the latest
 * when the process exits, by an uncaught error too; nothing can be done about SIGKILL.
 */
export class Screen implements Disposable {
  readonly modes = new ScreenModes();
  /** Undefined where standard input is no terminal. */
  readonly #leaveRawMode = process.stdin.isTTY ? enterRawMode() : undefined;
  #given = false;

  constructor() {
    process.on('exit', this.#giveBack);
  }

  /** A line about the connection, not of the program. */
  note(text: string): void {
    process.stderr.write(this.#leaveRawMode ? `\r\nctx: ${text}\r\n` : `ctx: ${text}\n`);
  }

  [Symbol.dispose](): void {
    this.#giveBack();
    process.off('exit', this.#giveBack);
  }

  readonly #giveBack = () => {
    if (this.#given) return;
    this.#given = true;
    try {
      this.#leaveRawMode?.();
      // The program's own line may be unfinished: what follows begins on a new one.
      if (process.stdout.isTTY) writeSync(process.stdout.fd, `${this.modes.restoring()}\r\n`);
    } catch {
      // The terminal is gone, and with it what would have to be given back.
    }
  };
}
