/** Changes the file of contexts, and leaves its comments and order as they are. */
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Document, parseDocument } from 'yaml';
import { parseContextFile, readContextText } from './contextFile.js';
import { UsageError } from './exitCode.js';

/** Readers see the file before or after the change. @throws UsageError where it is not sound afterwards */
export async function editContextFile(
  path: string,
  edit: (document: Document) => void,
): Promise<void> {
  const document = parseDocument((await readContextText(path)) ?? '');
  const [problem] = document.errors;
  if (problem) throw new UsageError(`${path}: ${problem.message}`);
  parseContextFile(path, document.toJS() ?? {});
  edit(document);
  parseContextFile(path, document.toJS());
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    // It may hold a token.
    await writeFile(temporary, document.toString(), { mode: 0o600, flag: 'wx' });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
