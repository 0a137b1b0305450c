/** Control groups for terminals, as the configuration asks for them. */
import { Cgroups } from '../pty/cgroup.js';
import type { Log } from '../supervisor/context.js';
import type { Configuration } from './config.js';
import { problemOf } from './configurationError.js';

/** Undefined where they are not asked for, or cannot be had and need not. @throws ConfigurationError */
export async function openCgroups(
  { use, memory_bytes, processes, cpu_percent }: Configuration['cgroups'],
  log: Log,
): Promise<Cgroups | undefined> {
  if (use === 'never') return undefined;
  try {
    return await Cgroups.open({
      ...(memory_bytes !== undefined && { memoryBytes: memory_bytes }),
      ...(processes !== undefined && { processes }),
      ...(cpu_percent !== undefined && { cpuPercent: cpu_percent }),
    });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (use === 'required') throw problemOf('cgroups', `cannot be used: ${reason}`);
    log.warn({ reason }, 'no control groups: terminals are not limited by them');
    return undefined;
  }
}
