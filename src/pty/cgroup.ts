/** The kernel's control groups (cgroups(7), version 2): one for each instance, where they can be made. */
import { randomBytes } from 'node:crypto';
import { mkdir, readdir, readFile, rmdir, stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';

/** statfs(2): a directory can be made on anything, but only here it is a control group. */
const CGROUP2_SUPER_MAGIC = 0x63677270;

/** Of all processes of one instance together; absent: not limited. */
export interface CgroupLimits {
  readonly memoryBytes?: number;
  readonly processes?: number;
  /** 100 is one processor. */
  readonly cpuPercent?: number;
}

/** Microseconds over which `cpuPercent` is meant. */
const CPU_PERIOD_US = 100_000;

/** What each limit writes, as `<controller>.max`. */
export function limitFiles({ memoryBytes, processes, cpuPercent }: CgroupLimits) {
  return [
    ...(memoryBytes === undefined ? [] : [['memory', String(memoryBytes)] as const]),
    ...(processes === undefined ? [] : [['pids', String(processes)] as const]),
    ...(cpuPercent === undefined
      ? []
      : [['cpu', `${(cpuPercent * CPU_PERIOD_US) / 100} ${CPU_PERIOD_US}`] as const]),
  ];
}

/** One group. What of it is not there (any more) is empty. */
export class Cgroup {
  constructor(readonly path: string) {}

  /** Whether a process of it lives, in a group below it too: the kernel knows for certain. */
  async isPopulated(): Promise<boolean> {
    const events = await readFile(join(this.path, 'cgroup.events'), 'latin1').catch(() => '');
    return /^populated 1$/m.test(events);
  }

  /** SIGKILL to all of it at once: what forks meanwhile is killed too. */
  async kill(): Promise<void> {
    await writeFile(join(this.path, 'cgroup.kill'), '1').catch((error: unknown) => {
      if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENODEV') throw error;
    });
  }

  /** Processes of it, but not of groups below. */
  async pids(): Promise<number[]> {
    const procs = await readFile(join(this.path, 'cgroup.procs'), 'latin1').catch(() => '');
    return procs.split('\n').filter(Boolean).map(Number);
  }

  /** Does nothing while a process of it lives. */
  async remove(): Promise<void> {
    await rmdir(this.path).catch(() => {});
  }
}

/** Where the groups of one supervisor are. */
export class Cgroups {
  private constructor(
    private readonly dir: string,
    private readonly limits: CgroupLimits,
  ) {}

  /**
   * Tries all that is needed for real. Where limits are asked for outside of the hierarchy's root,
   * this process moves into a group of its own: one with processes may not share out controllers.
   * @param parent the group to make groups in; absent: the one that this process is in
   * @throws Error that says what is missing
   */
  static async open(limits: CgroupLimits, parent?: string): Promise<Cgroups> {
    const base = parent ?? (await ownGroup());
    if ((await statfs(base)).type !== CGROUP2_SUPER_MAGIC) {
      throw new Error(`${base} is no control group of version 2`);
    }
    const wanted = limitFiles(limits).map(([controller]) => controller);
    const available = (await readFile(join(base, 'cgroup.controllers'), 'latin1'))
      .trim()
      .split(' ');
    const missing = wanted.filter((controller) => !available.includes(controller));
    if (missing.length > 0) {
      throw new Error(
        `${base} has no controller ${missing.join(', ')}: it was not delegated, or version 1 has it`,
      );
    }
    const dir = join(base, 'grantty-terminals');
    if (wanted.length > 0 && parent === undefined) await moveAside(base);
    await mkdir(dir, { recursive: true });
    const share = wanted.map((controller) => `+${controller}`).join(' ');
    if (share !== '') {
      for (const path of [base, dir]) await writeFile(join(path, 'cgroup.subtree_control'), share);
    }
    const groups = new Cgroups(dir, limits);
    const trial = await groups.make(`trial-${randomBytes(6).toString('hex')}`);
    const canKill = await stat(join(trial.path, 'cgroup.kill')).then(
      () => true,
      () => false,
    );
    await trial.remove();
    if (!canKill) throw new Error('the kernel has no cgroup.kill, which came with Linux 5.14');
    // Of instances that are long gone; one with processes stays for who finds it by its name.
    for (const name of await readdir(dir)) await groups.find(name).remove();
    return groups;
  }

  /** An empty group with the limits, named by the instance's random mark. */
  async make(nonce: string): Promise<Cgroup> {
    const group = this.find(nonce);
    await mkdir(group.path);
    try {
      for (const [controller, limit] of limitFiles(this.limits)) {
        await writeFile(join(group.path, `${controller}.max`), limit);
      }
    } catch (error) {
      await group.remove();
      throw error;
    }
    return group;
  }

  /** There or not. */
  find(nonce: string): Cgroup {
    return new Cgroup(join(this.dir, nonce));
  }
}

/** The directory of the group that this process is in. @throws Error where there is none */
async function ownGroup(): Promise<string> {
  const mounts = await readFile('/proc/self/mountinfo', 'latin1');
  const mount = /^\S+ \S+ \S+ \S+ (\S+) .*- cgroup2 /m.exec(mounts)?.[1];
  const path = /^0::(\S+)$/m.exec(await readFile('/proc/self/cgroup', 'latin1'))?.[1];
  if (mount === undefined || path === undefined) throw new Error('no cgroup v2 is mounted');
  return join(mount, path);
}

async function moveAside(base: string): Promise<void> {
  // The root may have processes besides; nothing is above it that would have cgroup.events.
  const isRoot = await readFile(join(base, 'cgroup.events')).then(
    () => false,
    () => true,
  );
  if (isRoot) return;
  const own = join(base, 'grantty-supervisor');
  await mkdir(own, { recursive: true });
  await writeFile(join(own, 'cgroup.procs'), String(process.pid));
}
