/** The keys that leave a terminal: found in what is typed, and held back. */
import type { Command } from 'commander';
import { parseKeys } from '../core/keys.js';
import { UsageError } from './exitCode.js';

export function withDetachKeys(command: Command): Command {
  return command.option(
    '--detach-keys <keys>',
    'keys that leave the terminal, separated by commas; empty: none',
    'ctrl-]',
  );
}

export function parseDetachKeys(list: string): Uint8Array {
  if (list === '') return new Uint8Array();
  try {
    return parseKeys('--detach-keys', list);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Looks for the sequence over the borders of chunks. */
export class DetachScanner {
  /** How many bytes of the sequence have been seen and held back. */
  #matched = 0;

  constructor(private readonly sequence: Uint8Array) {}

  /** What may be passed on, and whether the sequence was completed: then nothing after it is. */
  push(chunk: Uint8Array): { readonly pass: Uint8Array; readonly detach: boolean } {
    const { sequence } = this;
    if (sequence.length === 0) return { pass: chunk, detach: false };
    const seen = Buffer.concat([sequence.subarray(0, this.#matched), chunk]);
    const at = seen.indexOf(sequence);
    if (at >= 0) return { pass: seen.subarray(0, at), detach: true };
    this.#matched = this.#overlap(seen);
    return { pass: seen.subarray(0, seen.length - this.#matched), detach: false };
  }

  /** Length of the longest end of `bytes` that begins the sequence. */
  #overlap(bytes: Buffer): number {
    for (let length = Math.min(this.sequence.length - 1, bytes.length); length > 0; length--) {
      const end = bytes.subarray(bytes.length - length);
      if (end.equals(this.sequence.subarray(0, length))) return length;
    }
    return 0;
  }
}
