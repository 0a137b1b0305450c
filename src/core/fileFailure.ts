/** Why a file cannot be used, in words that a person can act on. */
import { errorCode } from './errors.js';
import { hostFailure } from './hostFailure.js';

const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'this user may not open it',
  EPERM: 'this user may not do that',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of its path is no directory',
  ELOOP: 'its links lead nowhere',
  ENAMETOOLONG: 'its name is too long',
};

/** For the operator; it does not name the file. */
export function fileFailure(error: unknown): string {
  const known = reasons[errorCode(error) ?? ''] ?? hostFailure(error);
  return known ?? (error instanceof Error ? error.message : String(error));
}
