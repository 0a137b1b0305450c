/** A new terminal: its directory, its environment, its first instance; or nothing of it. */
import { randomUUID } from 'node:crypto';
import type { TerminalRecord } from '../core/terminal.js';
import { makeResourceDir, writeEnvironment } from '../store/metadata.js';
import type { SeqRange } from '../store/recoveredResource.js';
import { discardResource } from '../store/resourceRemoval.js';
import type { Place } from './admission.js';
import type { CreateSpec } from './api.js';
import type { SupervisorContext } from './context.js';
import { Terminal } from './terminal.js';

/** The log of a directory that was just made. */
const NO_EVENTS: SeqRange = { first: 1, next: 1 };

/** Takes over `place`. @throws as `Supervisor.create` */
export async function createTerminal(
  context: SupervisorContext,
  stateDir: string,
  spec: CreateSpec,
  place: Place,
): Promise<Terminal> {
  const { tuple, env, cwdUnder } = spec;
  let dir: string | undefined;
  let terminal: Terminal | undefined;
  try {
    dir = await makeResourceDir(stateDir, tuple);
    if (Object.keys(env).length > 0) await writeEnvironment(dir, env);
    terminal = new Terminal(context, dir, newRecord(spec, context.now()), NO_EVENTS);
    await terminal.start(cwdUnder ? { cwdUnder } : {}, { place, env });
    return terminal;
  } catch (error) {
    await terminal?.abandon().catch((cause: unknown) => {
      const { owner, id } = tuple;
      context.log.error(
        { owner, id, err: cause },
        'a create that failed left its log not in order',
      );
    });
    place[Symbol.dispose]();
    // What cannot be removed for now is no terminal: the next create of this name removes it.
    if (dir !== undefined) await discardResource(dir, context.log).catch(() => undefined);
    throw error;
  }
}

function newRecord({ tuple, ...described }: CreateSpec, now: number): TerminalRecord {
  return {
    ...tuple,
    cwd: described.cwd,
    command: described.command,
    state: 'created',
    createdAt: Math.floor(now / 1000),
    uid: randomUUID(),
    instance: 0,
    size: described.size,
    title: described.title,
    labels: described.labels,
    backend: described.backend,
    name: described.name,
    onExit: described.onExit,
    ...(described.createdBy && { createdBy: described.createdBy }),
    updatedAt: now,
    logEpoch: 1,
    ...(described.request && { request: described.request }),
  };
}
