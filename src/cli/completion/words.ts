/** Words as the scripts of all shells have them. */

/** A command's place in the tree: its names from the root down, each after a space. */
export function placeOf(path: readonly string[]): string {
  return path.map((name) => ` ${name}`).join('');
}

/** One word to a POSIX shell, and to zsh. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
