/** The in-process registry of PTY backends and of the sessions that exact owners have. */
import { randomBytes } from 'node:crypto';
import type { TerminalSnapshot } from '../supervisor/api.js';
import type { Agent } from './agent.js';
import { type OwnedSessions, type PendingSpawn, PublishedSession } from './ownedSessions.js';
import {
  noSession,
  ownerNotLive,
  TerminalBackendCleanupError,
  TerminalSessionError,
  throwAll,
} from './sessionError.js';
import { SessionOwners } from './sessionOwners.js';
import type {
  TerminalBackend,
  TerminalBackendSession,
  TerminalReadRequest,
  TerminalReadResult,
  TerminalSendOperation,
  TerminalSendRequest,
  TerminalSessionId,
  TerminalSessionSnapshot,
  TerminalSignal,
  TerminalSignalResult,
  TerminalSpawnRequest,
  TerminalSpawnResult,
} from './sessionTypes.js';

/** A random id of 64 bits; begins with `session-`, so that a selector can mean sessions alone. */
export function issueSessionId(): string {
  return `session-${randomBytes(8).toString('hex')}`;
}

export interface TerminalSessionServiceOptions {
  /**
   * Gives the id of a new session, a `Name` that is never used twice. For hosts that decide about
   * the id before they spawn; absent: `issueSessionId`.
   */
  readonly issueId?: (owner: Agent, request: TerminalSpawnRequest) => string;
}

/**
 * Replaceable backends, and sessions that outlive the registration of theirs. Nothing here is
 * persistent; the terminals behind a backend may be.
 */
export class TerminalSessionService implements AsyncDisposable {
  readonly #issueId: (owner: Agent, request: TerminalSpawnRequest) => string;
  readonly #backends = new Map<string, TerminalBackend>();
  readonly #owners = new SessionOwners();
  #disposal: Promise<void> | undefined;

  constructor(options: TerminalSessionServiceOptions = {}) {
    this.#issueId = options.issueId ?? issueSessionId;
  }

  /**
   * Register one backend type for this effect scope.
   * @param backend - provider with a non-empty unique type.
   * @returns disposer that removes exactly this contribution.
   */
  registerBackend(backend: TerminalBackend): () => void {
    this.#checkOpen();
    if (backend.type === '') throw new TypeError('a backend needs a type that is not empty');
    if (this.#backends.has(backend.type)) {
      throw new TerminalSessionError(
        'DUPLICATE_BACKEND',
        `a backend of type ${backend.type} is registered already`,
      );
    }
    this.#backends.set(backend.type, backend);
    return () => {
      if (this.#backends.get(backend.type) === backend) this.#backends.delete(backend.type);
    };
  }

  /**
   * List registered backend types in registration order.
   * @returns fresh backend type names.
   */
  listBackends(): string[] {
    return [...this.#backends.keys()];
  }

  /**
   * Create and publish one owner-scoped session after backend setup succeeds.
   * @param owner - exact registered Agent that owns access and cleanup.
   * @param request - backend type plus optional owner-local name and cwd.
   * @param signal - cancellation of unpublished setup.
   * @returns published identity, metadata, status, and MOTD.
   */
  async spawn(
    owner: Agent,
    request: TerminalSpawnRequest,
    signal?: AbortSignal,
  ): Promise<TerminalSpawnResult> {
    this.#checkOpen();
    checkLive(owner);
    signal?.throwIfAborted();
    const backend = this.#backends.get(request.type);
    if (!backend) {
      throw new TerminalSessionError('NO_BACKEND', `no backend of type ${request.type}`);
    }
    const { name } = request;
    if (name !== undefined && this.#owners.get(owner)?.hasName(name)) {
      throw new TerminalSessionError(
        'DUPLICATE_NAME',
        `the owner has a session named ${name} already; choose another name, or close that one`,
      );
    }

    const owned = this.#owners.of(owner);
    const abort = new AbortController();
    let settle = () => {};
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const pending: PendingSpawn = { name, abort, settled };
    owned.pending.add(pending);
    const forward = () => abort.abort(signal?.reason);
    signal?.addEventListener('abort', forward, { once: true });
    try {
      const adopted = request.resource?.adopt?.record.id;
      const id = (adopted ?? this.#issueId(owner, request)) as TerminalSessionId;
      const session = await this.#setUp(owned, backend, owner, id, request, abort.signal);
      const published = new PublishedSession(id, owner, request.type, name, session);
      this.#owners.publish(published);
      return { ...published.snapshot(), motd: session.motd };
    } finally {
      signal?.removeEventListener('abort', forward);
      owned.pending.delete(pending);
      settle();
      this.#owners.forgetIfEmpty(owner);
    }
  }

  /**
   * Test whether an exact owner has a published session or unpublished spawn.
   * @param owner - exact live owner to inspect.
   * @returns true across the entire spawn-to-close interval, with no publication gap.
   */
  hasOwnerActivity(owner: Agent): boolean {
    return this.#owners.get(owner)?.active ?? false;
  }

  /**
   * Start one exclusive interactive send.
   * @param owner - exact session owner.
   * @param id - target PTY identity.
   * @param request - explicit text, submit behavior, and cancellation.
   * @returns live operation handle for foreground await or task registration.
   */
  startSend(
    owner: Agent,
    id: TerminalSessionId,
    request: TerminalSendRequest,
  ): TerminalSendOperation {
    this.#checkOpen();
    const published = this.#owners.find(owner, id);
    checkLive(owner);
    if (published.closing) throw noSession(id);
    if (published.send) {
      throw new TerminalSessionError('SEND_ACTIVE', `session ${id} has a send under way`);
    }
    const operation = published.session.startSend(request);
    published.send = operation;
    const release = () => {
      if (published.send === operation) published.send = undefined;
    };
    operation.done.then(release, release);
    return operation;
  }

  /**
   * Read one bounded scrollback page from an owned session.
   * @param owner - exact session owner.
   * @param id - target PTY identity.
   * @param request - optional newest-relative offset and line count.
   * @returns bounded retained text and pagination metadata.
   */
  read(owner: Agent, id: TerminalSessionId, request: TerminalReadRequest = {}): TerminalReadResult {
    return this.#owners.find(owner, id).session.read(request);
  }

  /**
   * Deliver an allowed signal through an owned backend session.
   * @param owner - exact session owner.
   * @param id - target PTY identity.
   * @param signal - allowed POSIX signal name.
   * @returns delivered foreground process-group identity.
   */
  signal(
    owner: Agent,
    id: TerminalSessionId,
    signal: TerminalSignal,
  ): Promise<TerminalSignalResult> {
    return this.#owners.find(owner, id).session.signal(signal);
  }

  /**
   * Close one owned session and remove it only after quiescent backend cleanup.
   * @param owner - exact session owner.
   * @param id - target PTY identity.
   * @param reason - diagnostic cleanup reason.
   * @returns true for a newly closed session, false when the same close is already in flight.
   */
  async kill(owner: Agent, id: TerminalSessionId, reason = 'model request'): Promise<boolean> {
    const published = this.#owners.find(owner, id);
    const joined = published.closing;
    await published.close(reason);
    this.#owners.remove(published);
    return !joined;
  }

  /**
   * Tell an owned session that its durable terminal has been started again.
   * @param owner - exact session owner.
   * @param id - target PTY identity.
   * @param terminal - as it is now.
   */
  async restarted(owner: Agent, id: TerminalSessionId, terminal: TerminalSnapshot): Promise<void> {
    await this.#owners.find(owner, id).session.restarted?.(terminal);
  }

  /**
   * List fresh snapshots for exactly one owner.
   * @param owner - exact owner whose sessions are visible.
   * @returns owner-visible snapshots in publication order.
   */
  list(owner: Agent): TerminalSessionSnapshot[] {
    const published = this.#owners.get(owner)?.published ?? [];
    return [...published].map((each) => each.snapshot());
  }

  /**
   * Refuses what is new, aborts unpublished set-ups and attempts every close. Idempotent.
   * @throws AggregateError with every close and clean-up that failed
   */
  dispose(): Promise<void> {
    this.#disposal ??= this.#end();
    return this.#disposal;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }

  async #end(): Promise<void> {
    // `#disposal` must be set before anything else can be called.
    await Promise.resolve();
    const reason = disposing();
    const failures = await Promise.all(
      this.#owners.owners.map((owner) => this.#owners.end(owner, reason, 'service disposal')),
    );
    this.#backends.clear();
    throwAll(failures.flat(), 'disposing the session service: clean-up failed');
  }

  /** A session that was not aborted, whatever its backend made of the abort. */
  async #setUp(
    owned: OwnedSessions,
    backend: TerminalBackend,
    owner: Agent,
    sessionId: TerminalSessionId,
    { name, cwd, resource = {} }: TerminalSpawnRequest,
    signal: AbortSignal,
  ): Promise<TerminalBackendSession> {
    let session: TerminalBackendSession;
    try {
      session = await backend.spawn({
        sessionId,
        owner,
        ...(name !== undefined && { name }),
        ...(cwd !== undefined && { cwd }),
        resource,
        signal,
      });
    } catch (error) {
      if (error instanceof TerminalBackendCleanupError) owned.keepFailure(error);
      throw signal.aborted ? signal.reason : error;
    }
    if (!signal.aborted) return session;
    await session.close('spawn was cancelled').catch((error: unknown) => owned.keepFailure(error));
    throw signal.reason;
  }

  #checkOpen(): void {
    if (this.#disposal) throw disposing();
  }
}

function checkLive(owner: Agent): void {
  if (!owner.live) throw ownerNotLive(owner);
}

function disposing(): TerminalSessionError {
  return new TerminalSessionError('SERVICE_DISPOSING', 'the session service is being disposed');
}
