/** A file that a key of the configuration names, or why it cannot be read and what to do about it. */
import { readFile } from 'node:fs/promises';
import { errorCode } from '../core/errors.js';
import { fileFailure } from '../core/fileFailure.js';
import { type ConfigurationError, problemOf } from './configurationError.js';

/** @throws ConfigurationError */
export async function readNamed(key: string, path: string): Promise<Buffer> {
  return readFile(path).catch((error: unknown) => {
    throw unreadable(key, path, error);
  });
}

export function unreadable(key: string, path: string, error: unknown): ConfigurationError {
  return problemOf(key, `${path} cannot be read: ${fileFailure(error)}`, remedyFor(key, error));
}

function remedyFor(key: string, error: unknown): string {
  const isForbidden = errorCode(error) === 'EACCES' || errorCode(error) === 'EPERM';
  return isForbidden
    ? `let the user with uid ${process.geteuid?.() ?? 0} read it`
    : `put it there, or change ${key}`;
}
