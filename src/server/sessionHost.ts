/** What the server needs of the process that it is in to serve sessions. */
import type { Agent } from '../session/agent.js';
import type { Screens } from '../session/screens.js';
import type { TerminalSpawnRequest, TerminalSpawnResult } from '../session/sessionTypes.js';
import type { TerminalSessionService } from '../session/terminalSessionService.js';

export interface SessionHost {
  readonly service: TerminalSessionService;
  /** Of all terminals, sessions or not. */
  readonly screens: Screens;
  /**
   * The argv that a session of this type stands for: what a grant's `commands` and the policy judge.
   * Where a backend has none, the one word of its type, which no `commands` can list.
   */
  commandOf(type: string): readonly string[];
  /** `spawn` of the service under an id that has been decided about. */
  spawnAs(
    id: string,
    owner: Agent,
    request: TerminalSpawnRequest,
    signal: AbortSignal,
  ): Promise<TerminalSpawnResult>;
}
