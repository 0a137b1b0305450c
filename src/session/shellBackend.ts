/** The backend whose sessions are durable terminals: bash with prompt marks, or any other command. */

import { randomBytes } from 'node:crypto';
import { counted } from '../core/counted.js';
import type { TerminalSize } from '../core/event.js';
import { parseName } from '../core/names.js';
import { unlessAborted } from '../core/unlessAborted.js';
import type { CreateSpec, Supervisor, TerminalSnapshot } from '../supervisor/api.js';
import { bashLaunch, launchSecret } from './bashLaunch.js';
import { type Clock, monotonicClock } from './clock.js';
import { type LeaseSource, unlimitedLeases } from './leaseSource.js';
import type { ScreenKey, Screens } from './screens.js';
import { TerminalBackendCleanupError } from './sessionError.js';
import type { TerminalBackend, TerminalBackendSpawnSpec } from './sessionTypes.js';
import { ShellSession } from './shellSession.js';

export const SESSION_SIZE: TerminalSize = { cols: 160, rows: 40 };

export interface ShellBackendOptions {
  readonly supervisor: Supervisor;
  readonly screens: Screens;
  /** Stable type; absent: `shell`. */
  readonly type?: string;
  /** What its sessions run unless a spawn says otherwise. Absent: bash with our prompt marks. */
  readonly command?: readonly string[];
  /** Path of bash. Absent: the one on the PATH of the session. */
  readonly bash?: string;
  /** Authority for set-up, close, and for sends that bring none. Absent: unlimited. */
  readonly leases?: LeaseSource;
  readonly clock?: Clock;
}

export class ShellBackend implements TerminalBackend {
  readonly type: string;

  constructor(private readonly options: ShellBackendOptions) {
    this.type = options.type ?? 'shell';
  }

  /** Resolves when the session is ready, silent, or has ended; an abort leaves nothing of it. */
  async spawn(spec: TerminalBackendSpawnSpec): Promise<ShellSession> {
    const { supervisor } = this.options;
    if (spec.resource.adopt) return this.#adopt(spec.resource.adopt, spec);
    const secret = randomBytes(16).toString('hex');
    const command = spec.resource.command ?? this.options.command;
    const create = await this.#createSpec(spec, command, secret);
    spec.signal.throwIfAborted();
    const terminal = await supervisor.create(create);
    try {
      return await this.#open(terminal, command ? undefined : secret, spec);
    } catch (error) {
      await this.#cleanUp(terminal, this.#leases(spec));
      throw spec.signal.aborted ? spec.signal.reason : error;
    }
  }

  async #createSpec(
    { owner, sessionId, name = '', cwd, resource }: TerminalBackendSpawnSpec,
    command: readonly string[] | undefined,
    secret: string,
  ): Promise<CreateSpec> {
    const launch = command ? { command, env: {} } : bashLaunch(secret, this.options.bash);
    const { cwdUnder, createdBy, request } = resource;
    return {
      tuple: {
        owner: owner.owner,
        agent: owner.agent,
        session: parseName('session', resource.session ?? 'default'),
        id: parseName('id', sessionId),
      },
      command: launch.command,
      cwd: cwd ?? (await this.options.supervisor.defaults(owner.owner)).cwd,
      env: { ...resource.env, ...launch.env },
      size: resource.size ?? SESSION_SIZE,
      title: resource.title ?? '',
      labels: resource.labels ?? {},
      name,
      backend: this.type,
      onExit: 'sweep',
      ...(cwdUnder && { cwdUnder }),
      ...(createdBy && { createdBy }),
      ...(request && { request }),
    };
  }

  async #open(
    terminal: TerminalSnapshot,
    secret: string | undefined,
    spec: TerminalBackendSpawnSpec,
  ): Promise<ShellSession> {
    const session = await this.#sessionOf(terminal, secret, spec);
    try {
      await unlessAborted(session.primed(), spec.signal);
      return session;
    } catch (error) {
      // Whether all of it is gone is for the clean-up to find out.
      await session.close('set-up failed').catch(() => {});
      throw error;
    }
  }

  /** Its prompt marks go on to be told; what was printed until now belongs to no send. */
  async #adopt(terminal: TerminalSnapshot, spec: TerminalBackendSpawnSpec): Promise<ShellSession> {
    const { env } = await this.options.supervisor.launchPlan(keyOf(terminal));
    const session = await this.#sessionOf(terminal, launchSecret(env), spec);
    try {
      await unlessAborted(session.resumed(), spec.signal);
      return session;
    } catch (error) {
      await session.leave();
      throw error;
    }
  }

  async #sessionOf(
    terminal: TerminalSnapshot,
    secret: string | undefined,
    spec: TerminalBackendSpawnSpec,
  ): Promise<ShellSession> {
    const { supervisor, screens, clock = monotonicClock } = this.options;
    const { owner, agent, pid, instance } = terminal.record;
    const key = keyOf(terminal);
    const attachment = { kind: 'agent', subject: agent, principal: `${owner}/${agent}` } as const;
    const attach = () => supervisor.attach(key, attachment);
    return new ShellSession({
      supervisor,
      screens,
      clock,
      key,
      pid,
      instance,
      attach,
      input: await attach(),
      leases: this.#leases(spec),
      ...(secret !== undefined && { secret }),
    });
  }

  #leases({ resource }: TerminalBackendSpawnSpec): LeaseSource {
    return resource.leases ?? this.options.leases ?? unlimitedLeases;
  }

  /** The record too: a session that was never published leaves nothing. */
  async #cleanUp(terminal: TerminalSnapshot, leases: LeaseSource): Promise<void> {
    const { supervisor } = this.options;
    const key = keyOf(terminal);
    try {
      const end = await supervisor.kill(key, { lease: leases.lease('kill') });
      if (end.quiescent) await supervisor.remove(key);
      else throw new Error(`still live: ${counted(end.survivors.length, 'process', 'processes')}`);
    } catch (cause) {
      throw new TerminalBackendCleanupError(`terminal ${key.id} could not be removed`, cause);
    }
  }
}

function keyOf({ record }: TerminalSnapshot): ScreenKey {
  return { owner: record.owner, id: record.id, uid: record.uid };
}
