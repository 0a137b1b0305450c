/** Paths of directories by their text alone. Symlinks are for whoever may look at the file system. */

/** Without empty and `.` segments. Undefined unless the path is absolute and free of NUL and `..`. */
export function normalDirectory(path: string): string | undefined {
  if (!path.startsWith('/') || path.includes('\0')) return undefined;
  const segments = path.split('/').filter((segment) => segment !== '' && segment !== '.');
  return segments.includes('..') ? undefined : `/${segments.join('/')}`;
}

/**
 * Whether `directory` is one of `roots`, which are in normal form, or below one. A directory with a
 * `..` segment is below nothing: where it leads depends on symlinks.
 */
export function isUnder(directory: string, roots: readonly string[]): boolean {
  const path = normalDirectory(directory);
  if (path === undefined) return false;
  return roots.some((root) => path === root || path.startsWith(root === '/' ? root : `${root}/`));
}
