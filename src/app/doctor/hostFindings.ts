/** The checks of a host that serves or is about to: what `serve` would stumble over later. */
import { constants, existsSync } from 'node:fs';
import { access, readdir, readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { messageOf } from '../../core/errors.js';
import { lockHolder } from '../../store/lock.js';
import { defaultStateDir } from '../defaultStateDir.js';
import { devFiles } from '../dev.js';
import { certificateFinding } from './certificateFinding.js';
import { configurationFindings } from './configurationFindings.js';
import { type Finding, fail, ok, warn } from './finding.js';
import { placeFindings, stateDirFindings } from './stateDirFindings.js';

export interface HostOptions {
  readonly config?: string;
  readonly stateDir?: string;
  readonly now: number;
}

export async function hostFindings(options: HostOptions): Promise<readonly Finding[]> {
  const { now } = options;
  const findings = [nodeFinding(process.versions.node), await ptyLibraryFinding()];
  for (const tool of ['flock', 'setpriv']) findings.push(await toolFinding(tool));
  const configured =
    options.config === undefined ? undefined : await configurationFindings(options.config, options);
  if (configured) findings.push(...configured.findings);
  const config = configured?.config;
  const stateDir =
    options.stateDir ?? config?.state_dir ?? (configured ? undefined : defaultStateDir());
  if (stateDir === undefined) {
    const advice = 'mend the configuration, or give --state-dir';
    findings.push(warn('state directory', 'not looked at: it is not known which it is', advice));
  } else findings.push(...(await stateDirFindings(stateDir)));
  const auditDir = config?.audit.dir;
  if (auditDir !== undefined) findings.push(...(await placeFindings('audit', auditDir)));
  findings.push(await ptyFinding(), await filesFinding());
  if (stateDir !== undefined) findings.push(...(await descriptorFindings(stateDir)));
  findings.push(await cgroupFinding());
  if (configured || stateDir === undefined) return findings;
  const { serverCert, serverKey } = devFiles(stateDir);
  return existsSync(serverCert)
    ? [...findings, await certificateFinding('dev certificate', serverCert, serverKey, now)]
    : findings;
}

/** Below it, HTTP/2 has a fault that was mended later. */
const RECOMMENDED_NODE = [22, 23, 5] as const;
const LEAST_NODE_MAJOR = 20;

export function nodeFinding(version: string): Finding {
  const parts = version.split('.').map(Number);
  const recommended = RECOMMENDED_NODE.join('.');
  if ((parts[0] ?? 0) < LEAST_NODE_MAJOR) {
    return fail('node', `${version} is too old`, `install ${recommended} or later`);
  }
  const at = RECOMMENDED_NODE.findIndex((part, index) => parts[index] !== part);
  return at >= 0 && (parts[at] ?? 0) < (RECOMMENDED_NODE[at] ?? 0)
    ? warn('node', version, `${recommended} or later has an HTTP/2 fix`)
    : ok('node', version);
}

/** What is used of node-pty is not its public API: loading checks that it is there. */
async function ptyLibraryFinding(): Promise<Finding> {
  try {
    await import('../../pty/nativePty.js');
    return ok('node-pty', 'loads, and has what is used of it');
  } catch (error) {
    return fail('node-pty', messageOf(error), 'run npm ci: the version in package.json is exact');
  }
}

/** Both come with util-linux: one holds locks, the other changes to a terminal's owner. */
async function toolFinding(name: string): Promise<Finding> {
  for (const dir of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(dir, name);
    if (
      await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return ok(name, path);
  }
  return fail(name, 'is not on PATH', 'install util-linux');
}

/** The part of used descriptors above which somebody should act. */
const HIGH_USE = 0.8;

/** Of the processes that hold the locks, where this user may look. */
async function descriptorFindings(stateDir: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const name of ['server', 'supervisor']) {
    const holder = await lockHolder(join(stateDir, `${name}.lock`)).catch(() => undefined);
    const pid = holder?.pid;
    if (pid === undefined) continue;
    try {
      const used = (await readdir(`/proc/${pid}/fd`)).length;
      const most = softLimitOf(await readFile(`/proc/${pid}/limits`, 'utf8'));
      findings.push(useFinding(`files of ${name}`, used, most));
    } catch {
      findings.push(warn(`files of ${name}`, `process ${pid}`, 'run this as its user to look'));
    }
  }
  return findings;
}

export function useFinding(check: string, used: number, most: number): Finding {
  const found = `${used} of ${most} descriptors in use`;
  if (used < HIGH_USE * most) return ok(check, found);
  return warn(check, found, `raise LimitNOFILE of its unit, or now: prlimit --nofile=${2 * most}`);
}

/** Optional: without it the processes of a terminal are found by other means. */
async function cgroupFinding(): Promise<Finding> {
  const controllers = await readFile('/sys/fs/cgroup/cgroup.controllers', 'utf8').catch(() => '');
  return controllers === ''
    ? warn('cgroup v2', 'is not mounted', 'terminals have no limits of memory, processes and CPU')
    : ok('cgroup v2', controllers.trim());
}

/** PTYs that should be left for terminals. */
const LEAST_PTYS = 64;

async function ptyFinding(): Promise<Finding> {
  const read = async (name: string) =>
    Number(await readFile(`/proc/sys/kernel/pty/${name}`, 'utf8'));
  try {
    const [max, reserve, used] = await Promise.all([read('max'), read('reserve'), read('nr')]);
    const left = Math.max(0, max - reserve - used);
    const found = `${used} of ${max} in use, ${reserve} reserved: ${left} left`;
    return left < LEAST_PTYS
      ? warn('PTYs', found, `raise kernel.pty.max: sysctl kernel.pty.max=${max * 2}`)
      : ok('PTYs', found);
  } catch (error) {
    return fail('PTYs', messageOf(error), 'mount /proc and /dev/pts');
  }
}

/** Descriptors for as many terminals as one owner may have, their logs and their clients. */
const LEAST_FILES = 4096;

async function filesFinding(): Promise<Finding> {
  const soft = softLimitOf(await readFile('/proc/self/limits', 'utf8').catch(() => ''));
  return soft < LEAST_FILES
    ? warn('open files', `at most ${soft}`, `raise it for the server: ulimit -n ${LEAST_FILES}`)
    : ok('open files', `at most ${soft}`);
}

/** Of /proc/<pid>/limits; NaN where it says nothing. */
function softLimitOf(limits: string): number {
  const [, soft = ''] = /^Max open files +(\S+)/m.exec(limits) ?? [];
  return soft === 'unlimited' ? Number.POSITIVE_INFINITY : Number.parseInt(soft, 10);
}
