/** Sessions and screens over a supervisor: wires the service, its shell backend and the emulators. */

import { GranttyError } from '../core/errors.js';
import type { SessionHost } from '../server/sessionHost.js';
import { type Clock, monotonicClock } from '../session/clock.js';
import { LogEvents } from '../session/logEvents.js';
import { Screens } from '../session/screens.js';
import { ScreenWorkers } from '../session/screenWorkers.js';
import type { TerminalSpawnRequest } from '../session/sessionTypes.js';
import { ShellBackend } from '../session/shellBackend.js';
import { issueSessionId, TerminalSessionService } from '../session/terminalSessionService.js';
import { resourceDir } from '../store/paths.js';
import { LogReader } from '../store/reader/logReader.js';
import type { Supervisor } from '../supervisor/api.js';

/** A path, so that a grant's `commands` can name what a session of type `shell` runs. */
const BASH = '/bin/bash';

export interface SessionsOptions {
  readonly supervisor: Supervisor;
  /** Where the supervisor keeps its files; they are only read. */
  readonly stateDir: string;
  /** Path of bash on this host. Absent: `/bin/bash`. */
  readonly bash?: string;
  readonly clock?: Clock;
  /** The built entry of the worker threads. Absent: the one that belongs to this file. */
  readonly workerEntry?: URL;
}

/**
 * Disposing ends the emulators and leaves sessions' terminals as they are; dispose the `service`
 * before it to close them. The supervisor is the caller's.
 */
export interface Sessions extends SessionHost, AsyncDisposable {
  readonly events: LogEvents;
  readonly workers: ScreenWorkers;
}

/** Starts nothing: threads start when somebody asks for a screen. */
export function openSessions(options: SessionsOptions): Sessions {
  const { supervisor, stateDir, bash = BASH, clock = monotonicClock, workerEntry } = options;
  const events = new LogEvents(supervisor, async (key) => {
    const terminal = await supervisor.get(key);
    if (!terminal) throw new GranttyError('TERMINAL_NOT_FOUND', 'there is no such terminal');
    const { record } = terminal;
    return LogReader.open(resourceDir(stateDir, record), record.uid);
  });
  const workers = new ScreenWorkers(workerEntry ? { entry: workerEntry } : {});
  const screens = new Screens({ source: events, workers, clock });
  const decided = new WeakMap<TerminalSpawnRequest, string>();
  const service = new TerminalSessionService({
    issueId: (_owner, request) => decided.get(request) ?? issueSessionId(),
  });
  const shell = new ShellBackend({ supervisor, screens, bash, clock });
  service.registerBackend(shell);
  return {
    service,
    screens,
    events,
    workers,
    commandOf: (type) => (type === shell.type ? [bash] : [type]),
    spawnAs(id, owner, request, signal) {
      decided.set(request, id);
      return service.spawn(owner, request, signal);
    },
    async [Symbol.asyncDispose]() {
      screens[Symbol.dispose]();
      await workers[Symbol.asyncDispose]();
    },
  };
}
