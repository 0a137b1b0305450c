/** The foreground process group of a terminal: who it is, a signal to it, whether it waits for input. */
import { setTimeout } from 'node:timers/promises';
import { errorCode, fieldInvalid } from '../core/errors.js';
import { type SignalName, signalNumbers } from '../core/signals.js';
import { waitForInput } from './inputWait.js';
import { type ProcessInfo, readProcess, scanProcesses } from './processTable.js';
import type { TreeMarks } from './processTree.js';

/** What tells a terminal from every other. */
export type TerminalMarks = Pick<TreeMarks, 'pid' | 'startTime' | 'sessionId' | 'ttyDevice'>;

export interface Foreground {
  readonly processGroup?: number;
  readonly shellInForeground: boolean;
  readonly waitingForInput: 'yes' | 'no' | 'unknown';
}

/**
 * The group that the kernel names as the terminal's foreground now, verified: the terminal is this
 * session's, and the group has a process that belongs to the session and the terminal. A process
 * group lies within one session, so then all of it does. Undefined when that cannot be shown.
 */
export async function foregroundGroup(marks: TerminalMarks): Promise<number | undefined> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const group = namedGroup(marks);
    if (group === undefined) return undefined;
    if (isMember(readProcess(group), marks, group)) return group;
    // The group's leader has ended, as in `true | cat`: any other member will do.
    const { processes } = await scanProcesses();
    const member = processes.find((process) => isMember(process, marks, group));
    const stillThere = member !== undefined && isMember(readProcess(member.pid), marks, group);
    if (stillThere && namedGroup(marks) === group) return group;
    await setTimeout(RETRY_MS);
  }
  return undefined;
}

/**
 * Signals the foreground group and answers which it was; undefined when there was none. `check` is
 * called right before and stops it by throwing.
 * @throws FIELD_INVALID where the group belongs to a user whom this process may not signal (sudo)
 */
export async function signalForeground(
  marks: TerminalMarks,
  signal: SignalName,
  check: () => void = () => {},
): Promise<number | undefined> {
  const group = await foregroundGroup(marks);
  check();
  if (group === undefined) return undefined;
  try {
    process.kill(-group, signalNumbers[signal]);
    return group;
  } catch (error) {
    if (errorCode(error) === 'ESRCH') return undefined;
    if (errorCode(error) === 'EPERM') {
      throw fieldInvalid(
        'signal',
        'the program in the foreground runs as another user, out of reach',
      );
    }
    throw error;
  }
}

/** The exact probe; `unknown` wherever /proc does not let it be sure. */
export async function foregroundState(marks: TerminalMarks): Promise<Foreground> {
  const group = namedGroup(marks);
  if (group === undefined) return { shellInForeground: false, waitingForInput: 'unknown' };
  let hasShell = false;
  const members = async () => {
    const { processes } = await scanProcesses();
    const found = processes.filter((process) => isMember(process, marks, group));
    hasShell = found.some(({ pid }) => pid === marks.pid);
    return found;
  };
  const waitingForInput = await waitForInput(members, marks.ttyDevice);
  return {
    processGroup: group,
    shellInForeground: hasShell,
    // What was seen of a group that is in the background by now says nothing.
    waitingForInput: namedGroup(marks) === group ? waitingForInput : 'unknown',
  };
}

/**
 * A group may have just ended, and the shell not yet have taken the terminal back; or another one
 * has come to the fore while it was verified.
 */
const MAX_ATTEMPTS = 5;
const RETRY_MS = 5;

/** What the kernel says through the top-level process, whose terminal it must be. */
function namedGroup({ pid, startTime, ttyDevice }: TerminalMarks): number | undefined {
  const top = readProcess(pid);
  if (top?.startTime !== startTime || top.ttyDevice !== ttyDevice) return undefined;
  return top.foregroundGroup > 0 ? top.foregroundGroup : undefined;
}

function isMember(
  process: ProcessInfo | undefined,
  { sessionId, ttyDevice }: TerminalMarks,
  group: number,
): boolean {
  return (
    process?.processGroup === group &&
    process.session === sessionId &&
    process.ttyDevice === ttyDevice
  );
}
