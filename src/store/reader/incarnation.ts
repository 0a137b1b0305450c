/** Whose log it is that a path leads to: a terminal that was deleted and one that was made since share it. */
import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { readRecord } from '../metadata.js';
import { META_FILE } from '../paths.js';
import { deleted, whenGone } from './logPart.js';

export class Incarnation {
  /** The meta.json that named it, by what no other file has; it is read again when it was replaced. */
  #known: string | undefined;

  constructor(
    private readonly dir: string,
    /** Random for each incarnation. */
    private readonly uid: string,
  ) {}

  /**
   * Asked once something was opened: none comes back, so what is its own now was its own then.
   * @throws TERMINAL_NOT_FOUND when it was deleted, whatever is in its place
   */
  async require(): Promise<void> {
    const found = lstatSync(join(this.dir, META_FILE), { bigint: true, throwIfNoEntry: false });
    const seen = found && [found.dev, found.ino, found.ctimeNs].join();
    if (seen !== undefined && seen === this.#known) return;
    const { uid } = await readRecord(this.dir).catch(whenGone);
    // Empty: written by another program, which ours never is.
    if (uid !== this.uid && uid !== '') throw deleted();
    this.#known = seen;
  }
}
