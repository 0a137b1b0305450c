/** Where a terminal's files are: the layout below a state directory. */
import { join } from 'node:path';
import { isName, type TerminalTuple } from '../core/names.js';

export const META_FILE = 'meta.json';
export const ENVIRONMENT_FILE = 'env.json';
export const EVENTS_FILE = 'events.jsonl';
export const INDEX_FILE = 'events.idx';

/**
 * `<state-dir>/home/<owner>/agent/<agent>/session/<session>/terminal/<id>`. Each part of the tuple
 * is a checked `Name`, so that the result is below `stateDir` whatever the caller sent.
 */
export function resourceDir(stateDir: string, tuple: TerminalTuple): string {
  return join(stateDir, ...resourceParts(tuple));
}

export function resourceParts(tuple: TerminalTuple): readonly string[] {
  const { owner, agent, session, id } = tuple;
  return ['home', owner, 'agent', agent, 'session', session, 'terminal', id];
}

/** The tuple that a resource directory's path stands for, or undefined when it is not one. */
export function tupleOfDir(dir: string): TerminalTuple | undefined {
  const parts = dir.split('/').filter((part) => part !== '');
  const [home, owner, agentWord, agent, sessionWord, session, terminalWord, id] = parts.slice(-8);
  if (home !== 'home' || agentWord !== 'agent') return undefined;
  if (sessionWord !== 'session' || terminalWord !== 'terminal') return undefined;
  if (owner === undefined || agent === undefined) return undefined;
  if (session === undefined || id === undefined) return undefined;
  if (!isName(owner) || !isName(agent) || !isName(session) || !isName(id)) return undefined;
  return { owner, agent, session, id };
}

const SEALED = /^events\.([1-9][0-9]{0,15})\.jsonl$/;

/** A part of the log that is complete: named by the seq of its first event. */
export function sealedEventsFile(firstSeq: number): string {
  return `events.${firstSeq}.jsonl`;
}

export function sealedIndexFile(firstSeq: number): string {
  return `events.${firstSeq}.idx`;
}

/** The first seq of a sealed part by its file name, or undefined for any other name. */
export function sealedFirstSeq(fileName: string): number | undefined {
  const digits = SEALED.exec(fileName)?.[1];
  const seq = digits === undefined ? Number.NaN : Number(digits);
  return Number.isSafeInteger(seq) ? seq : undefined;
}
