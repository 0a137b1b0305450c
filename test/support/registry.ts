/** A real in-process supervisor on a temporary state directory, for tests. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import type { ExitEvent, TerminalEvent } from '../../src/core/event.js';
import type { Name } from '../../src/core/names.js';
import type { Cgroups } from '../../src/pty/cgroup.js';
import type { CreateSpec, Lease, Supervisor } from '../../src/supervisor/api.js';
import { createInProcessSupervisor } from '../../src/supervisor/inProcess.js';
import type { Isolation } from '../../src/supervisor/isolation.js';
import type { Ticker } from '../../src/supervisor/lifeSweep.js';
import type { SupervisorLimits } from '../../src/supervisor/limits.js';

export const silentLog = pino({ level: 'silent' });

/** Never ends; for tests that are not about leases. */
export const lease: Lease = { id: 'test', notAfter: Number.MAX_SAFE_INTEGER };

export const name = (text: string) => text as Name;

export const owner = name(String(process.getuid?.() ?? 0));

export interface TestRegistry extends AsyncDisposable {
  readonly supervisor: Supervisor;
  readonly stateDir: string;
}

export async function startRegistry(
  options: {
    stateDir?: string;
    isolation?: Isolation;
    now?: () => number;
    limits?: Partial<SupervisorLimits>;
    ticker?: Ticker;
    cgroups?: Cgroups;
    hurry?: AbortSignal;
  } = {},
): Promise<TestRegistry> {
  const stateDir = options.stateDir ?? (await mkdtemp(join(tmpdir(), 'grantty-registry-')));
  const supervisor = await createInProcessSupervisor({
    stateDir,
    stateDirId: 'test',
    isolation: options.isolation ?? { mode: 'shared-uid', owners: owner },
    version: 'test',
    log: silentLog,
    locator: ({ id }) => `test:${id}`,
    ...(options.now && { now: options.now }),
    ...(options.limits && { limits: options.limits }),
    ...(options.cgroups && { cgroups: options.cgroups }),
    ...(options.ticker && { ticker: options.ticker }),
    ...(options.hurry && { hurry: options.hurry }),
  });
  return {
    supervisor,
    stateDir,
    async [Symbol.asyncDispose]() {
      await supervisor[Symbol.asyncDispose]();
      if (options.stateDir === undefined) await rm(stateDir, { recursive: true, force: true });
    },
  };
}

let created = 0;

/** What creates a terminal of its own id that runs `command`. */
export function createSpec(command: readonly string[], rest: Partial<CreateSpec> = {}): CreateSpec {
  created += 1;
  return {
    tuple: { owner, agent: name('coder'), session: name('default'), id: name(`t${created}`) },
    command,
    cwd: '/',
    env: {},
    size: { cols: 80, rows: 24 },
    title: '',
    labels: {},
    name: '',
    backend: 'command',
    onExit: 'leave',
    ...rest,
  };
}

/** All events of a terminal from `output` on up to the exit. */
export async function eventsUntilExit(
  supervisor: Supervisor,
  key: Parameters<Supervisor['openOutput']>[0],
): Promise<{ events: TerminalEvent[]; exit: ExitEvent; nextSeq: number }> {
  const stop = new AbortController();
  const { items, nextSeq } = await supervisor.openOutput(key, stop.signal);
  const events: TerminalEvent[] = [];
  for await (const item of items) {
    if (item.kind !== 'events') continue;
    for (const event of item.events) {
      events.push(event);
      if (event.type !== 'process.exit') continue;
      stop.abort();
      return { events, exit: event, nextSeq };
    }
  }
  throw new Error('the output ended without an exit');
}

export function outputOf(events: readonly TerminalEvent[]): Buffer {
  return Buffer.concat(
    events.flatMap((event) => (event.type === 'pty.output' ? [event.data] : [])),
  );
}
