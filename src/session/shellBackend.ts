/** The backend whose sessions are durable terminals: bash with prompt marks, or any other command. */
import { randomBytes } from 'node:crypto';
import type { TerminalSize } from '../core/event.js';
import { parseName } from '../core/names.js';
import type { CreateSpec, Supervisor, TerminalSnapshot } from '../supervisor/api.js';
import { bashLaunch } from './bashLaunch.js';
import { type Clock, monotonicClock } from './clock.js';
import { type LeaseSource, unlimitedLeases } from './leaseSource.js';
import type { Screens } from './screens.js';
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
    const secret = randomBytes(16).toString('hex');
    const command = spec.resource.command ?? this.options.command;
    const create = await this.#createSpec(spec, command, secret);
    spec.signal.throwIfAborted();
    const terminal = await supervisor.create(create);
    try {
      return await this.#open(terminal, command ? undefined : secret, spec.signal);
    } catch (error) {
      await this.#cleanUp(terminal);
      throw spec.signal.aborted ? spec.signal.reason : error;
    }
  }

  async #createSpec(
    { owner, sessionId, name = '', cwd, resource }: TerminalBackendSpawnSpec,
    command: readonly string[] | undefined,
    secret: string,
  ): Promise<CreateSpec> {
    const launch = command ? { command, env: {} } : bashLaunch(secret);
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
    { record }: TerminalSnapshot,
    secret: string | undefined,
    signal: AbortSignal,
  ): Promise<ShellSession> {
    const { supervisor, screens, leases = unlimitedLeases, clock = monotonicClock } = this.options;
    const key = { owner: record.owner, id: record.id, uid: record.uid };
    const principal = `${record.owner}/${record.agent}`;
    const input = await supervisor.attach(key, { kind: 'agent', subject: record.agent, principal });
    const session = new ShellSession({
      supervisor,
      screens,
      clock,
      key,
      pid: record.pid,
      input,
      leases,
      ...(secret !== undefined && { secret }),
    });
    try {
      await unlessAborted(session.primed(), signal);
      return session;
    } catch (error) {
      // Whether all of it is gone is for the clean-up to find out.
      await session.close('set-up failed').catch(() => {});
      throw error;
    }
  }

  /** The record too: a session that was never published leaves nothing. */
  async #cleanUp({ record }: TerminalSnapshot): Promise<void> {
    const { supervisor, leases = unlimitedLeases } = this.options;
    const key = { owner: record.owner, id: record.id, uid: record.uid };
    try {
      const end = await supervisor.kill(key, { lease: leases.lease('kill') });
      if (end.quiescent) await supervisor.remove(key);
      else throw new Error(`${end.survivors.length} processes still live`);
    } catch (cause) {
      throw new TerminalBackendCleanupError(`terminal ${record.id} could not be removed`, cause);
    }
  }
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
  });
  promise.catch(() => {});
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
