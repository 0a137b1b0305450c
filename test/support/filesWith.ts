/** A search of every file that was written. */
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** Files below the folder, by their paths in it, that hold the text: as it is, in base64 or in hex. */
export async function filesWith(folder: string, text: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  expect(paths.length).toBeGreaterThan(5);
  const forms = formsOf(text);
  const held = await Promise.all(
    paths.map(async (path) => {
      const bytes = await readFile(path);
      return forms.some((form) => bytes.includes(form));
    }),
  );
  return paths.filter((_, index) => held[index]).map((path) => relative(folder, path));
}

export function holds(said: string, text: string): boolean {
  return formsOf(text).some((form) => said.includes(form));
}

/** In base64 the same text looks different at each of three offsets; its ends depend on what is beside. */
function formsOf(text: string): string[] {
  const bytes = Buffer.from(text);
  const shifted = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '')
      .slice(4, -2),
  );
  return [text, bytes.toString('hex'), ...shifted];
}
