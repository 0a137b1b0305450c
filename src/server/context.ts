/** What handlers of RPCs share. */
import type { Logger } from 'pino';
import type { Delegation } from '../auth/delegation.js';
import type { Supervisor } from '../supervisor/api.js';
import type { Clock } from './clock.js';
import type { Gate } from './gate.js';
import type { Hub } from './hub.js';
import type { OpenStreams } from './openStreams.js';
import type { Revoker } from './revoker.js';
import type { ServerLimits } from './serverLimits.js';
import type { SessionBook } from './sessionBook.js';
import type { SessionHost } from './sessionHost.js';
import type { TerminalQuota } from './terminalQuota.js';
import type { WatcherList } from './watcherList.js';

export interface ServerContext {
  readonly gate: Gate;
  readonly supervisor: Supervisor;
  /** Read only: histories are read from the files below it. */
  readonly stateDir: string;
  readonly hub: Hub;
  readonly watchers: WatcherList;
  readonly streams: OpenStreams;
  readonly quota: TerminalQuota;
  readonly revoker: Revoker;
  readonly sessions: SessionHost;
  readonly sessionBook: SessionBook;
  /** Absent: this server signs no tokens. */
  readonly delegation?: Delegation;
  readonly limits: ServerLimits;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Semantic version of the server. */
  readonly version: string;
}
