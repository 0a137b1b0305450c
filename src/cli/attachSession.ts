/** One attachment from this process's own terminal or pipes; what attach and run share. */
import type { AttachEvent, Attachment } from '../client/attachment.js';
import type { Client } from '../client/connect.js';
import { counted } from '../core/counted.js';
import { ErrorReason } from '../gen/public/grantty/v1/errors_pb.js';
import { AttachFrameKind, type Denied } from '../gen/public/grantty/v1/stream_pb.js';
import { AttachmentKind, type ExitStatus } from '../gen/public/grantty/v1/terminal_pb.js';
import { DetachScanner } from './detachKeys.js';
import { ExitCode } from './exitCode.js';
import { isLoss, LOSS_NOTE, rewindNote } from './interruption.js';
import { note, writeBytes } from './output.js';
import { processExitCode } from './processExit.js';
import { QueryFilter } from './queryFilter.js';
import { Screen, windowSize } from './screen.js';

export { windowSize };

export interface AttachSettings {
  /** Empty: nothing detaches. */
  readonly detachKeys: Uint8Array;
  /** Whether the terminal gets this window's size, now and when it changes. */
  readonly followWindow: boolean;
  /**
   * What of the history a person is shown: `recent` of a terminal that has been there, `all` of one
   * that was made for this. Without a terminal at our end it is all of it, in any case.
   */
  readonly history: 'recent' | 'all';
}

export interface TerminalName {
  readonly id: string;
  readonly owner?: string;
}

/** Bytes of `recent` history: many screens, and no wait. */
const RECENT_BYTES = 256n * 1024n;

const ENDED_NOTE = 'its process has ended before; "ctx terminal start" runs the command again';

/** The person has pressed the detach keys. */
class Detached extends Error {}

/** A signal asks this process to end. */
class Interrupted extends Error {
  constructor(readonly signal: NodeJS.Signals) {
    super(signal);
  }
}

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

export interface AttachOutcome {
  /** The process's exit code, or 0 when the person detached. */
  readonly code: number;
  /** False: the process lives on. */
  readonly exited: boolean;
}

export async function attachTerminal(
  client: Client,
  terminal: TerminalName,
  settings: AttachSettings,
): Promise<AttachOutcome> {
  const leaving = new AbortController();
  const interrupt = (signal: NodeJS.Signals) => leaving.abort(new Interrupted(signal));
  for (const signal of ENDING_SIGNALS) process.on(signal, interrupt);
  try {
    const status = await attached(client, terminal, settings, leaving);
    // The screen is given back: what is said now stands on it.
    return { code: processExitCode(status), exited: true };
  } catch (error) {
    if (error instanceof Detached) {
      note('detached; the terminal lives on');
      return { code: ExitCode.OK, exited: false };
    }
    if (!(error instanceof Interrupted)) throw error;
    for (const signal of ENDING_SIGNALS) process.off(signal, interrupt);
    // The screen is given back; now the signal does what it does to a process without a handler.
    process.kill(process.pid, error.signal);
    return { code: ExitCode.OWN_FAILURE, exited: false };
  } finally {
    for (const signal of ENDING_SIGNALS) process.off(signal, interrupt);
  }
}

async function attached(
  client: Client,
  terminal: TerminalName,
  settings: AttachSettings,
  leaving: AbortController,
): Promise<ExitStatus | undefined> {
  const size = settings.followWindow ? windowSize() : undefined;
  const isPerson = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const isRecent = isPerson && settings.history === 'recent';
  let screen: Screen | undefined;
  await using attachment = await client.attach(
    {
      terminal,
      kind: isPerson ? AttachmentKind.HUMAN : AttachmentKind.SERVICE,
      ...(size && { size }),
      ...(isRecent && { start: { case: 'tailBytes', value: RECENT_BYTES } }),
    },
    {
      signal: leaving.signal,
      onInterruption: (failure, attempt) => {
        if (attempt === 1 && isLoss(failure)) screen?.note(LOSS_NOTE);
      },
      onRewind: (lastSeq) => screen?.note(rewindNote(lastSeq)),
    },
  );
  using lent = new Screen();
  screen = lent;
  const follow = () => {
    const now = windowSize();
    if (now) void attachment.resize(now);
  };
  if (settings.followWindow) process.stdout.on('resize', follow);
  void forwardInput(attachment, settings.detachKeys, leaving);
  try {
    return await showOutput(attachment.events, lent, isRecent);
  } finally {
    process.stdout.off('resize', follow);
    // Ends the wait for input, and with it what keeps this process.
    process.stdin.destroy();
  }
}

async function showOutput(
  events: AsyncIterable<AttachEvent>,
  screen: Screen,
  isReplay: boolean,
): Promise<ExitStatus | undefined> {
  let status: ExitStatus | undefined;
  let liveFrom = 0n;
  let filter = isReplay ? new QueryFilter() : undefined;
  const told = new Set<string>();
  const show = async (bytes: Uint8Array) => {
    screen.modes.push(bytes);
    await writeBytes(bytes);
  };
  for await (const event of events) {
    switch (event.case) {
      case 'started':
        liveFrom = event.value.nextSeq;
        break;
      case 'output':
        if (filter && event.value.seq >= liveFrom) {
          await show(filter.end());
          filter = undefined;
        }
        await show(filter ? filter.push(event.value.data) : event.value.data);
        break;
      case 'exited':
        status = event.value.status;
        // What a person sees then is history, and no key does anything.
        if (isReplay && event.value.seq < liveFrom) screen.note(ENDED_NOTE);
        break;
      case 'denied':
        tellOnce(told, event.value, screen);
        break;
      case 'reconnected':
        if (event.value.inputInDoubt > 0) screen.note(doubtNote(event.value.inputInDoubt));
        break;
    }
  }
  return status;
}

/** Each kind of refusal once: a person without the right to type does not want a line per key. */
function tellOnce(told: Set<string>, denied: Denied, screen: Screen): void {
  const kind = AttachFrameKind[denied.frame]?.toLowerCase() ?? 'frame';
  // Nobody asked for the size of what has ended: we follow the window by ourselves.
  if (kind !== 'input' && denied.reason === ErrorReason.TERMINAL_EXITED) return;
  const key = `${kind} ${denied.reason}`;
  if (told.has(key)) return;
  told.add(key);
  screen.note(`${kind === 'open' ? 'resize' : kind} refused: ${denied.message}`);
}

function doubtNote(bytes: number): string {
  return `connected again; the last ${counted(bytes, 'byte')} typed may not have arrived`;
}

/** Standard input to the terminal, until it ends, the person detaches, or it is destroyed. */
async function forwardInput(
  attachment: Attachment,
  detachKeys: Uint8Array,
  leaving: AbortController,
): Promise<void> {
  // Keys are pressed by a person; what comes from a pipe is data and holds no detach keys.
  const scanner = new DetachScanner(process.stdin.isTTY ? detachKeys : new Uint8Array());
  try {
    for await (const chunk of process.stdin) {
      const { pass, detach } = scanner.push(chunk);
      if (pass.length > 0) await attachment.input(pass);
      if (detach) {
        leaving.abort(new Detached());
        return;
      }
    }
    attachment.endInput();
  } catch (error) {
    // Destroyed at the end of the attachment, which has told how it went.
    if (!process.stdin.destroyed) leaving.abort(error);
  }
}
