/** What a decision is made with, what is asked, and what comes of it. */
import type { RateBudgets } from '../auth/budgets.js';
import type { Policy } from '../auth/policy.js';
import type { VerifiedToken } from '../auth/token.js';
import type { Launch } from '../core/access.js';
import type { Capability } from '../core/capability.js';
import type { Grant } from '../core/grant.js';
import type { TerminalTuple } from '../core/names.js';
import type { SignalName } from '../core/signals.js';
import type { Lease, Supervisor, TerminalKey, TerminalSnapshot } from '../supervisor/api.js';
import type { Authenticator, Credentials } from './authentication.js';
import type { DraftStart, Recorder } from './decisionDraft.js';

/** All that a decision is made with. */
export interface Gate extends Authenticator, Recorder {
  readonly supervisor: Supervisor;
  readonly policy: Policy;
  readonly inputRates: RateBudgets;
}

/** Who asks, and by which call or frame. */
export type Caller = Credentials & Omit<DraftStart, 'action' | 'inputBytes'>;

/** What is asked for. Names are as the caller wrote them; nothing of it has been checked. */
export interface Ask {
  readonly action: Capability;
  readonly also?: readonly Capability[];
  readonly target: Target;
  /** For a create or start: what would run, found out once the caller may start anything there. */
  readonly launch?: (
    target: TerminalTuple,
    terminal: TerminalSnapshot | undefined,
  ) => Promise<Launch>;
  /** For a signal; undefined when the caller named none that exists. */
  readonly signal?: SignalName | undefined;
  /** For a question about signals that names none. */
  readonly anySignal?: true;
  readonly signalBytes?: readonly SignalName[];
  readonly inputBytes?: number;
}

export type Target =
  /** A terminal that may exist. */
  | { readonly kind: 'stored'; readonly owner: string | undefined; readonly id: string }
  /** A terminal to be made. */
  | {
      readonly kind: 'new';
      readonly owner: string | undefined;
      readonly agent: string;
      readonly session: string;
      readonly id: string;
    }
  /** The terminal of a stream that was opened on it: this very incarnation. */
  | { readonly kind: 'known'; readonly terminal: TerminalSnapshot };

/** What was decided. The effect happens under `lease` or not at all. */
export interface Permit {
  readonly decisionId: string;
  readonly token: VerifiedToken;
  readonly grant: Grant;
  readonly target: TerminalTuple;
  /** The incarnation that the decision is about. */
  readonly key: TerminalKey;
  /** As it was when the decision was made; absent for a terminal to be made. */
  readonly terminal?: TerminalSnapshot;
  readonly launch?: Launch;
  readonly lease: Lease;
}
