/** What can be known of a command and its directory before the fork, with the owner's rights. */
import { open } from 'node:fs/promises';
import { LRUCache } from 'lru-cache';
import { errorCode, GranttyError } from '../core/errors.js';
import { type FoundFile, findFile, type Identity, identityOf, mayExecute } from './fileAccess.js';
import type { RunAs } from './runAs.js';

export interface CommandContext {
  /** The child's PATH, searched when the first element has no slash. */
  readonly path: string | undefined;
  /** Absolute; where a relative path begins. */
  readonly cwd: string;
  /** Absent: this process's own user. */
  readonly runAs?: RunAs | undefined;
}

export interface CwdContext {
  /** The directory must be one of these or below one, after its own links have been followed. */
  readonly cwdUnder?: readonly string[] | undefined;
  readonly runAs?: RunAs | undefined;
}

/** Bytes that the kernel reads to find an interpreter (BINPRM_BUF_SIZE, execve(2)). */
const HEAD_BYTES = 256;
/** Interpreters that may be scripts themselves, one after another, before the kernel refuses. */
const MAX_INTERPRETERS = 4;

/**
 * `command` with its first element found and made absolute: a file that the owner may execute,
 * whose interpreter is there. What still fails at exec(2) is seen as output and exit code.
 * @throws COMMAND_NOT_FOUND with the reason
 */
export async function resolveCommand(
  command: readonly string[],
  { path, cwd, runAs }: CommandContext,
): Promise<string[]> {
  const [name, ...args] = command;
  if (!name) throw notFound('the command is empty');
  if (command.some((element) => element.includes('\0'))) throw notFound('an argument holds a NUL');
  const identity = runAs && (await identityOf(runAs));
  if (name.includes('/')) {
    const file = absolute(name, cwd);
    const problem = await executionProblem(file, identity, cwd);
    if (problem) throw notFound(`${name} ${problem}`);
    return [file, ...args];
  }
  let nearest: string | undefined;
  for (const directory of (path ?? '').split(':')) {
    const file = absolute(`${directory || '.'}/${name}`, cwd);
    const problem = await executionProblem(file, identity, cwd);
    if (!problem) return [file, ...args];
    if (problem !== MISSING) nearest ??= `${file} ${problem}`;
  }
  throw notFound(
    nearest ?? `${name} is not on the PATH of the terminal; an absolute path needs none`,
  );
}

/**
 * The directory with its symbolic links followed. `cwdUnder` is compared as it stands, by segments.
 * @throws CWD_INVALID
 */
export async function resolveCwd(
  cwd: string,
  { cwdUnder, runAs }: CwdContext = {},
): Promise<string> {
  if (!cwd.startsWith('/')) throw cwdInvalid('the working directory must be absolute');
  if (cwd.includes('\0')) throw cwdInvalid('the working directory holds a NUL');
  const identity = runAs && (await identityOf(runAs));
  const { realPath, stats } = await findFile(cwd, identity).catch((cause: unknown) => {
    throw cwdInvalid(`the working directory ${reason(cause)}`, cause);
  });
  if (!stats.isDirectory()) throw cwdInvalid('the working directory is not a directory');
  if (!(await mayExecute(realPath, stats, identity))) {
    throw cwdInvalid('the working directory may not be entered by the owner');
  }
  if (cwdUnder && !cwdUnder.some((parent) => isWithin(realPath, parent))) {
    throw cwdInvalid('the working directory lies outside what the grant allows');
  }
  return realPath;
}

const MISSING = 'does not exist';

/** Why the owner cannot execute `file`; undefined when nothing is known against it. */
async function executionProblem(
  file: string,
  identity: Identity | undefined,
  cwd: string,
  interpreters = 0,
): Promise<string | undefined> {
  let found: FoundFile;
  try {
    found = await findFile(file, identity);
    const { realPath } = found;
    if (found.stats.isDirectory()) return 'is a directory';
    if (!found.stats.isFile()) return 'is not a regular file';
    if (!(await mayExecute(realPath, found.stats, identity)))
      return 'may not be executed by the owner';
  } catch (error) {
    return reason(error);
  }
  const interpreter = await interpreterOf(found);
  if (interpreter === undefined) return undefined;
  if (interpreters === MAX_INTERPRETERS) return 'has too many interpreters one after another';
  const problem = await executionProblem(
    absolute(interpreter, cwd),
    identity,
    cwd,
    interpreters + 1,
  );
  return problem && `needs the interpreter ${interpreter}, which ${problem}`;
}

/**
 * Of files as they were when they were looked into: whoever changes one changes its times, unless it
 * had been changed just before. Most terminals run one of a few programs.
 */
const interpreters = new LRUCache<string, { readonly path: string | undefined }>({ max: 256 });

/** Milliseconds since its last change from which on a further one shows: clocks of file systems are coarse. */
const SETTLED_MS = 1_000;

/** The path after `#!`, undefined for all that is no script, or cannot be read here. */
async function interpreterOf({ realPath, stats }: FoundFile): Promise<string | undefined> {
  const { dev, ino, size, mtimeMs, ctimeMs } = stats;
  const stamp = [dev, ino, size, mtimeMs, ctimeMs].join();
  const known = interpreters.get(stamp);
  if (known) return known.path;
  const head = Buffer.alloc(HEAD_BYTES);
  try {
    await using handle = await open(realPath, 'r');
    const { bytesRead } = await handle.read(head, 0, HEAD_BYTES, 0);
    const [line = ''] = head.toString('utf8', 0, bytesRead).split('\n');
    const path = /^#![ \t]*([^ \t\0]+)/.exec(line)?.[1];
    if (Date.now() - ctimeMs > SETTLED_MS) interpreters.set(stamp, { path });
    return path;
  } catch {
    return undefined;
  }
}

function absolute(path: string, cwd: string): string {
  return path.startsWith('/') ? path : `${cwd}/${path}`;
}

function isWithin(path: string, parent: string): boolean {
  const prefix = parent.endsWith('/') ? parent : `${parent}/`;
  return path === parent || `${path}/`.startsWith(prefix);
}

function reason(error: unknown): string {
  switch (errorCode(error)) {
    case 'ENOENT':
    case 'ENOTDIR':
      return MISSING;
    case 'EACCES':
      return 'may not be reached by the owner';
    case 'ELOOP':
      return 'is a loop of symbolic links';
    case 'ENAMETOOLONG':
      return 'is too long a name';
    default:
      return 'cannot be read';
  }
}

function notFound(message: string): GranttyError {
  return new GranttyError('COMMAND_NOT_FOUND', message);
}

function cwdInvalid(message: string, cause?: unknown): GranttyError {
  return new GranttyError('CWD_INVALID', message, { cause });
}
