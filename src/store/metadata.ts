/** A terminal resource's directory: made and found; its record, projections, environment. */
import { existsSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode, GranttyError } from '../core/errors.js';
import { isName, type Name, type TerminalTuple } from '../core/names.js';
import type { TerminalRecord } from '../core/terminal.js';
import {
  createPrivateDir,
  ensurePrivateDir,
  readRegular,
  requireDirectory,
  type WriteOptions,
  writeFileAtomic,
} from './files.js';
import {
  ENVIRONMENT_FILE,
  EVENTS_FILE,
  META_FILE,
  resourceDir,
  resourceParts,
  sealedFirstSeq,
  tupleOfDir,
} from './paths.js';
import { recordFromJson, recordToJson } from './recordJson.js';
import { clearRemoved, removeResource } from './resourceRemoval.js';
import type { StoreLog } from './storeLog.js';

/**
 * Bytes of meta.json or env.json that are read: what the limits of argv, env and labels take, escaped.
 * Less than a message of the supervisor's socket, so that no record is too large to be told.
 */
export const MAX_METADATA_FILE_BYTES = 960 * 1024;

/** Of making a directory whose parents may go at any moment, with the last of their other resources. */
const MAX_ATTEMPTS = 100;

/**
 * Makes the directory of a new resource, and those above it that are missing.
 * @throws TERMINAL_EXISTS when there is one, sound or not; Error when a directory above is a link,
 * or somebody else could change what it holds
 */
export async function makeResourceDir(stateDir: string, tuple: TerminalTuple): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await tryResourceDir(stateDir, tuple);
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function tryResourceDir(stateDir: string, tuple: TerminalTuple): Promise<string> {
  let parent = stateDir;
  for (const part of resourceParts(tuple).slice(0, -1)) {
    parent = join(parent, part);
    await ensurePrivateDir(parent);
  }
  const dir = resourceDir(stateDir, tuple);
  if (await createPrivateDir(dir)) return dir;
  if (!(await isHalfMade(dir))) {
    throw new GranttyError('TERMINAL_EXISTS', `there is a terminal ${tuple.id} already`);
  }
  await removeResource(dir);
  return tryResourceDir(stateDir, tuple);
}

/** Removes what a creation that was cut short has left in place of a resource; false when it is one. */
export async function removeHalfMade(dir: string): Promise<boolean> {
  if (!(await isHalfMade(dir))) return false;
  await removeResource(dir);
  return true;
}

/** Left by a creation that was cut short: the record comes before any process and any event. */
async function isHalfMade(dir: string): Promise<boolean> {
  await requireDirectory(dir);
  const names = await readdir(dir);
  if (names.includes(META_FILE) || names.some((name) => sealedFirstSeq(name))) return false;
  return !names.includes(EVENTS_FILE) || (await lstat(join(dir, EVENTS_FILE))).size === 0;
}

export interface RecordWriteOptions extends WriteOptions {
  /** The record that the projections were last written from: those that say the same stay. */
  readonly projected?: TerminalRecord | undefined;
}

/**
 * Writes meta.json alone: of a step that a durable record follows, or of another size. After a power
 * cut it may be the one before, which may have been durable, and is whole either way.
 */
export async function writePassingRecord(dir: string, record: TerminalRecord): Promise<void> {
  const path = join(dir, META_FILE);
  const sync = existsSync(path) && 'content';
  await writeFileAtomic(path, recordToJson(record), { sync });
}

/**
 * Writes meta.json, which is the truth, then the text projections, which follow it without a sync
 * of their own and are written anew at recovery.
 */
export async function writeRecord(
  dir: string,
  record: TerminalRecord,
  options: RecordWriteOptions = {},
): Promise<void> {
  const { projected } = options;
  await writeFileAtomic(join(dir, META_FILE), recordToJson(record), options);
  const written = new Map(projected && projectionsOf(projected));
  for (const [file, text] of projectionsOf(record)) {
    if (written.get(file) !== text) await writeProjection(dir, file, text);
  }
}

/** The text files that follow the record, and what they say. */
export function projectionsOf({
  state,
  owner,
  cwd,
}: TerminalRecord): [file: string, text: string][] {
  return Object.entries({ state, status: state, owner, cwd }).map(([file, value]) => [
    file,
    `${value}\n`,
  ]);
}

export async function writeProjection(dir: string, file: string, text: string): Promise<void> {
  await writeFileAtomic(join(dir, file), text, { sync: false });
}

/**
 * @throws ENOENT when there is no meta.json; Error when it is unsound, is not an ordinary file
 * of ours, or is the record of another terminal than its directory's
 */
export async function readRecord(dir: string): Promise<TerminalRecord> {
  await requireDirectory(dir);
  return parseRecord(dir, await readRegular(join(dir, META_FILE), MAX_METADATA_FILE_BYTES));
}

/** The record that the content of a directory's meta.json is. @throws as `readRecord` */
export function parseRecord(dir: string, json: Buffer): TerminalRecord {
  const path = join(dir, META_FILE);
  let record: TerminalRecord;
  try {
    record = recordFromJson(json.toString());
  } catch (error) {
    throw new Error(`${path} is unsound: ${String(error)}`, { cause: error });
  }
  const place = tupleOfDir(dir);
  if (place !== undefined && !sameTuple(place, record)) {
    throw new Error(`${path} is the record of another terminal`);
  }
  return record;
}

function sameTuple(a: TerminalTuple, b: TerminalTuple): boolean {
  return a.owner === b.owner && a.agent === b.agent && a.session === b.session && a.id === b.id;
}

/** The request's variables: what a later instance starts with. Never part of the audit. */
export async function writeEnvironment(
  dir: string,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  await writeFileAtomic(join(dir, ENVIRONMENT_FILE), `${JSON.stringify(env, null, 2)}\n`);
}

/** Empty when there is no env.json. */
export async function readEnvironment(dir: string): Promise<Readonly<Record<string, string>>> {
  const path = join(dir, ENVIRONMENT_FILE);
  let json: Buffer;
  try {
    json = await readRegular(path, MAX_METADATA_FILE_BYTES);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return {};
    throw error;
  }
  const value: unknown = JSON.parse(json.toString());
  if (!isStringMap(value)) throw new Error(`${path} is not an object of strings`);
  return value;
}

function isStringMap(value: unknown): value is Readonly<Record<string, string>> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    Object.values(value).every((item) => typeof item === 'string')
  );
}

export interface FoundResource {
  readonly dir: string;
  readonly tuple: TerminalTuple;
}

export interface ScanOptions {
  /** Told of each entry that is passed over, and why. */
  readonly log?: StoreLog;
  /** Removes what removals that were cut short have left: for whoever alone writes here. */
  readonly clear?: boolean;
}

/**
 * Every resource directory below a state directory, ordered by owner, agent, session, id. What is
 * no directory of a sound name, a link included, is passed over and reported. The directory of a
 * resource may hold no sound record: `readRecord` tells.
 */
export async function* scanResources(
  stateDir: string,
  options: ScanOptions = {},
): AsyncIterable<FoundResource> {
  const { log } = options;
  const home = join(stateDir, 'home');
  for (const owner of await namedDirs(home, log)) {
    const agents = join(home, owner, 'agent');
    for (const agent of await namedDirs(agents, log)) {
      const sessions = join(agents, agent, 'session');
      for (const session of await namedDirs(sessions, log)) {
        const terminals = join(sessions, session, 'terminal');
        if (options.clear) await clearRemoved(terminals, log);
        for (const id of await namedDirs(terminals, log)) {
          const tuple = { owner, agent, session, id };
          yield { dir: resourceDir(stateDir, tuple), tuple };
        }
      }
    }
  }
}

async function namedDirs(path: string, log: StoreLog | undefined): Promise<Name[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: unknown) => {
    if (errorCode(error) !== 'ENOENT') log?.warn({ path, err: error }, 'passed over: unreadable');
    return [];
  });
  const names: Name[] = [];
  for (const entry of entries) {
    if (isName(entry.name) && entry.isDirectory()) names.push(entry.name);
    else log?.warn({ path: join(path, entry.name) }, 'passed over: no directory of a sound name');
  }
  return names.sort();
}
