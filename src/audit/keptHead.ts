/** A checkpoint that was kept elsewhere, in whatever form it was kept. */
import { open } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { parseCheckpoint } from './checkpoint.js';
import { readerOf, readLines } from './lines.js';

/**
 * From the line itself, a line of the server's log, or a file of either; of several in a file, the
 * last. @throws Error when there is none
 */
export async function readKeptHead(given: string): Promise<string> {
  const found = headIn(given) ?? (await headInFile(given));
  if (found !== undefined) return found;
  throw new Error('--head holds no checkpoint: give a copy of HEAD, or a log that has one');
}

async function headInFile(path: string): Promise<string | undefined> {
  let last: string | undefined;
  try {
    await using handle = await open(path);
    for await (const { bytes } of readLines(readerOf(handle))) {
      last = headIn(bytes.toString()) ?? last;
    }
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENAMETOOLONG') return undefined;
    throw error;
  }
  return last;
}

function headIn(text: string): string | undefined {
  const line = text.trim();
  if (parseCheckpoint(line)) return line;
  try {
    const { head } = JSON.parse(line) ?? {};
    return typeof head === 'string' && parseCheckpoint(head) ? head : undefined;
  } catch {
    return undefined;
  }
}
