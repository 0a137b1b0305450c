/** Who has which sessions: by exact owner, and by id. */
import type { Agent } from './agent.js';
import { OwnedSessions, type PublishedSession } from './ownedSessions.js';
import { noSession, ownerNotLive, TerminalSessionError, throwAll } from './sessionError.js';
import type { TerminalSessionId } from './sessionTypes.js';

interface Owner {
  readonly sessions: OwnedSessions;
  readonly detach: () => void;
}

/** An owner is known for as long as it has something that its disposal would have to end or report. */
export class SessionOwners {
  readonly #sessions = new Map<TerminalSessionId, PublishedSession>();
  readonly #owners = new Map<Agent, Owner>();

  get owners(): readonly Agent[] {
    return [...this.#owners.keys()];
  }

  /** What the owner has, if it is known. */
  get(owner: Agent): OwnedSessions | undefined {
    return this.#owners.get(owner)?.sessions;
  }

  /** The owner's sessions, with the one clean-up attached to its scope. */
  of(owner: Agent): OwnedSessions {
    const known = this.get(owner);
    if (known) return known;
    const sessions = new OwnedSessions();
    const detach = owner.onDispose(async () => {
      const failures = await this.end(owner, ownerNotLive(owner), 'owner disposal');
      throwAll(failures, `closing the sessions of agent ${owner.agent} failed`);
    });
    this.#owners.set(owner, { sessions, detach });
    return sessions;
  }

  /** @throws NO_SESSION, FOREIGN_SESSION */
  find(owner: Agent, id: TerminalSessionId): PublishedSession {
    const published = this.#sessions.get(id);
    if (!published) throw noSession(id);
    if (published.owner !== owner) {
      throw new TerminalSessionError('FOREIGN_SESSION', `session ${id} belongs to another owner`);
    }
    return published;
  }

  publish(published: PublishedSession): void {
    this.#sessions.set(published.id, published);
    this.of(published.owner).published.add(published);
  }

  remove(published: PublishedSession): void {
    this.#sessions.delete(published.id);
    this.get(published.owner)?.published.delete(published);
    this.forgetIfEmpty(published.owner);
  }

  /** Aborts the owner's set-ups and attempts every close. @returns what failed */
  async end(owner: Agent, abort: unknown, closeReason: string): Promise<readonly unknown[]> {
    const sessions = this.get(owner);
    if (!sessions) return [];
    const { closed, failures } = await sessions.end(abort, closeReason);
    for (const { id } of closed) this.#sessions.delete(id);
    this.forgetIfEmpty(owner);
    return failures;
  }

  forgetIfEmpty(owner: Agent): void {
    const known = this.#owners.get(owner);
    if (!known?.sessions.empty) return;
    known.detach();
    this.#owners.delete(owner);
  }
}
