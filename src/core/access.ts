/** What is asked for when a decision is made: an action on a terminal, with what constrains it. */
import type { Capability } from './capability.js';
import type { TerminalTuple } from './names.js';
import type { SignalName } from './signals.js';

export interface AccessRequest {
  readonly action: Capability;
  /** Further actions that the same grant must hold: `terminal.kill` of a delete, `terminal.read` of a send. */
  readonly also?: readonly Capability[];
  /** The stored tuple, or for a create the one to be stored. Never parsed from an id. */
  readonly target: TerminalTuple;
  /** Given wherever a process would be started; `commands`, `cwd_under` and `env_allow` judge it. */
  readonly launch?: Launch;
  /** Given with `terminal.signal`; SIGKILL needs `terminal.kill` of the same grant besides. */
  readonly signal?: SignalName;
  /** Which signal is not asked yet: `signals` does not judge. Only for questions, never for an effect. */
  readonly anySignal?: true;
  /** Given with `terminal.write`: the signals that the input would raise; see `signalsRaisedBy`. */
  readonly signalBytes?: readonly SignalName[];
  /** Given with `terminal.write`: bytes of the frame. Charged to a budget, not judged here. */
  readonly inputBytes?: number;
}

/** The process that would be started, after the owner's defaults have been filled in. */
export interface Launch {
  /** Full argv. */
  readonly command: readonly string[];
  readonly cwd: string;
  /** Names of the request's variables, not those that every child gets. */
  readonly envNames: readonly string[];
}
