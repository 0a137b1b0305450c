/** The sessions of this server by whom they belong to, those of an earlier server included. */
import type { Logger } from 'pino';
import { GranttyError } from '../core/errors.js';
import type { Name, TerminalTuple } from '../core/names.js';
import { AgentScope } from '../session/agent.js';
import { type LeaseSource, type SessionEffect, unlimitedLeases } from '../session/leaseSource.js';
import { TerminalBackendCleanupError } from '../session/sessionError.js';
import type {
  TerminalSendRequest,
  TerminalSessionId,
  TerminalSessionSnapshot,
  TerminalSpawnRequest,
  TerminalSpawnResult,
} from '../session/sessionTypes.js';
import type { Lease, Supervisor, SurvivingProcess, TerminalSnapshot } from '../supervisor/api.js';
import type { Clock } from './clock.js';
import { notFound } from './errors.js';
import type { Permit } from './gate.js';
import { stored } from './perform.js';
import type { SessionHost } from './sessionHost.js';
import type { Operation } from './sessionSend.js';
import { SessionSends } from './sessionSends.js';
import { LeftSessions, type Pair, pairName } from './sessionsLeft.js';

/** Sessions of one owner on the list, exited ones included: each keeps up to 4 MiB of lines. */
const MAX_SESSIONS_PER_OWNER = 256;

export interface OpenSession {
  readonly id: TerminalSessionId;
  /** Whom it belongs to in the service. */
  readonly scope: AgentScope;
  readonly tuple: TerminalTuple;
  /** The incarnation of its terminal. */
  readonly uid: string;
  readonly sends: SessionSends;
  readonly leases: ClosingLease;
}

/** What a session does by itself is allowed; how it is closed, by whoever closes it. */
class ClosingLease implements LeaseSource {
  closing: Lease | undefined;

  lease(effect: SessionEffect): Lease {
    return this.closing ?? unlimitedLeases.lease(effect);
  }
}

/** One (owner, agent), there for as long as it has activity. */
interface Activity {
  readonly scope: AgentScope;
  /** Being spawned. */
  readonly pending: Set<TerminalTuple>;
  /** In the order of publication. */
  readonly published: Map<string, OpenSession>;
}

export interface SessionBookParts {
  readonly host: SessionHost;
  readonly supervisor: Supervisor;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class SessionBook {
  readonly #activities = new Map<string, Activity>();
  readonly #left: LeftSessions;

  constructor(private readonly parts: SessionBookParts) {
    const { host, supervisor, logger } = parts;
    this.#left = new LeftSessions({
      supervisor,
      types: () => host.service.listBackends(),
      adopt: (terminal) => this.#adopt(terminal),
      logger,
    });
  }

  /** @throws as `TerminalSessionService.spawn`, QUOTA_TERMINALS */
  async spawn(
    tuple: TerminalTuple,
    request: TerminalSpawnRequest,
    signal: AbortSignal,
  ): Promise<{ readonly session: OpenSession; readonly spawned: TerminalSpawnResult }> {
    const { host, supervisor } = this.parts;
    await this.#left.adopt(tuple);
    if (this.#countOf(tuple.owner) >= MAX_SESSIONS_PER_OWNER) throw tooMany();
    const activity = this.#activityOf(tuple);
    activity.pending.add(tuple);
    try {
      const leases = new ClosingLease();
      const asked = { ...request, resource: { ...request.resource, leases } };
      const spawned = await host.spawnAs(tuple.id, activity.scope, asked, signal);
      try {
        const terminal = await supervisor.get({ owner: tuple.owner, id: tuple.id });
        if (terminal === undefined) throw notFound();
        return { session: this.#publish(activity, spawned.sessionId, terminal, leases), spawned };
      } catch (error) {
        await host.service.kill(activity.scope, spawned.sessionId, 'spawn failed');
        throw error;
      }
    } finally {
      activity.pending.delete(tuple);
      this.#forgetIfIdle(tuple);
    }
  }

  /** The session of the terminal that was decided about. @throws TERMINAL_NOT_FOUND */
  async find(permit: Permit): Promise<OpenSession> {
    const { target, key } = permit;
    await this.#left.adopt(target);
    const session = this.#activities.get(pairName(target))?.published.get(target.id);
    if (session !== undefined && session.uid === key.uid) return session;
    const { backend } = stored(permit).record;
    const wasSession = this.parts.host.service.listBackends().includes(backend);
    throw new GranttyError('TERMINAL_NOT_FOUND', wasSession ? isOver(target) : isNone(target));
  }

  /** Published sessions of one pair, in the order of publication. */
  async list(
    pair: Pair,
  ): Promise<readonly (OpenSession & { readonly snapshot: TerminalSessionSnapshot })[]> {
    await this.#left.adopt(pair);
    const activity = this.#activities.get(pairName(pair));
    if (activity === undefined) return [];
    return this.parts.host.service.list(activity.scope).flatMap((snapshot) => {
      const session = activity.published.get(snapshot.sessionId);
      return session ? [{ ...session, snapshot }] : [];
    });
  }

  /** The tuples of all that the pair has, published or being spawned. */
  async active(pair: Pair): Promise<readonly TerminalTuple[]> {
    await this.#left.adopt(pair);
    const activity = this.#activities.get(pairName(pair));
    if (activity === undefined) return [];
    return [...activity.pending, ...[...activity.published.values()].map(({ tuple }) => tuple)];
  }

  /** @throws as `TerminalSessionService.startSend` */
  startSend({ id, scope }: OpenSession, request: TerminalSendRequest): Operation {
    return this.parts.host.service.startSend(scope, id, request);
  }

  /** Ends the session's processes under this lease; with survivors it stays on the list. */
  async close(
    session: OpenSession,
    reason: string,
    lease: Lease | undefined,
  ): Promise<{ readonly closed: boolean; readonly survivors: readonly SurvivingProcess[] }> {
    const { id, scope, tuple, leases } = session;
    leases.closing = lease;
    try {
      const closed = await this.parts.host.service.kill(scope, id, reason);
      this.#activities.get(pairName(tuple))?.published.delete(id);
      this.#forgetIfIdle(tuple);
      return { closed, survivors: [] };
    } catch (error) {
      const survived = error instanceof TerminalBackendCleanupError && error.survivors.length > 0;
      if (survived) return { closed: false, survivors: error.survivors };
      throw error;
    }
  }

  /**
   * The session whose terminal has been started again goes on, also one that had exited before this
   * server came. Never rejects: the process is there by now.
   */
  async terminalStarted({ target }: Permit, terminal: TerminalSnapshot): Promise<void> {
    const { host, logger } = this.parts;
    const { record } = terminal;
    if (!host.service.listBackends().includes(record.backend)) return;
    try {
      await this.#left.adopt(target);
      const session = this.#activities.get(pairName(target))?.published.get(target.id);
      if (session?.uid === record.uid) {
        await host.service.restarted(session.scope, session.id, terminal);
      } else await this.#adopt(terminal);
    } catch (error) {
      logger.warn({ err: error, ...target }, 'a session could not go on with its new process');
    }
  }

  /** The session whose terminal has been deleted is over. */
  async terminalDeleted({ target, key }: Permit): Promise<void> {
    const session = this.#activities.get(pairName(target))?.published.get(target.id);
    if (session === undefined || session.uid !== key.uid) return;
    await this.close(session, 'the terminal was deleted', undefined).catch((error: unknown) => {
      this.parts.logger.warn({ err: error, ...session.tuple }, 'a session could not be closed');
    });
  }

  #publish(
    { scope, published }: Activity,
    id: TerminalSessionId,
    { record }: TerminalSnapshot,
    leases: ClosingLease,
  ): OpenSession {
    const { owner, agent, session, uid } = record;
    const tuple = { owner, agent, session, id: record.id };
    const open = { id, scope, tuple, uid, sends: new SessionSends(this.parts.clock), leases };
    published.set(id, open);
    return open;
  }

  async #adopt(terminal: TerminalSnapshot): Promise<void> {
    const { record } = terminal;
    const { backend, name } = record;
    const activity = this.#activityOf(record);
    activity.pending.add(record);
    try {
      const leases = new ClosingLease();
      const { sessionId } = await this.parts.host.service.spawn(activity.scope, {
        type: backend,
        ...(name !== '' && { name }),
        resource: { adopt: terminal, leases },
      });
      this.#publish(activity, sessionId, terminal, leases);
    } finally {
      activity.pending.delete(record);
      this.#forgetIfIdle(record);
    }
  }

  #activityOf(pair: Pair): Activity {
    const name = pairName(pair);
    const known = this.#activities.get(name);
    if (known !== undefined) return known;
    const scope = new AgentScope(pair.owner, pair.agent);
    const activity: Activity = { scope, pending: new Set(), published: new Map() };
    this.#activities.set(name, activity);
    return activity;
  }

  #forgetIfIdle(pair: Pair): void {
    const activity = this.#activities.get(pairName(pair));
    if (activity?.pending.size === 0 && activity.published.size === 0) {
      this.#activities.delete(pairName(pair));
    }
  }

  #countOf(owner: Name): number {
    let count = 0;
    for (const { scope, pending, published } of this.#activities.values()) {
      if (scope.owner === owner) count += pending.size + published.size;
    }
    return count;
  }
}

/** For who may use the terminal, and so may learn of it. */
function isNone({ id }: TerminalTuple): string {
  return `${id} is a terminal and no session: type into it with Write or Attach, end it with Stop or Kill; Spawn makes sessions`;
}

function isOver({ id }: TerminalTuple): string {
  return `the session ${id} is over: its terminal can still be read, and StartTerminal begins it again once it has exited`;
}

function tooMany(): GranttyError {
  return new GranttyError(
    'QUOTA_TERMINALS',
    `an owner may have ${MAX_SESSIONS_PER_OWNER} sessions; close those that have exited`,
  );
}
