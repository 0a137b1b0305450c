/** The checks of a state directory: whose it is, room on its disk, and who works in it. */
import type { Stats, StatsFs } from 'node:fs';
import { constants, existsSync } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { errorCode, messageOf } from '../../core/errors.js';
import { type LockHolder, lockHolder } from '../../store/lock.js';
import { SUPERVISOR_LOCK, supervisorSocket } from '../../supervisor/detached.js';
import { SERVER_LOCK } from '../heldStateDir.js';
import { type Finding, fail, ok, warn } from './finding.js';

type Space = Pick<StatsFs, 'bavail' | 'bsize' | 'files' | 'ffree'>;

/** Bytes that should be free for logs. */
const LEAST_FREE_BYTES = 1024 ** 3;

export async function stateDirFindings(path: string): Promise<Finding[]> {
  const check = 'state directory';
  let found: Stats;
  try {
    found = await stat(path);
  } catch (error) {
    return errorCode(error) === 'ENOENT'
      ? [ok(check, `${path} does not exist; the first "ctx serve" makes it`)]
      : [fail(check, messageOf(error), 'run this as the user that serves, or give --state-dir')];
  }
  const { uid, mode } = found;
  const me = process.geteuid?.() ?? 0;
  if (me !== 0 && uid !== me) {
    const advice = 'run this as that user, or give --state-dir';
    return [fail(check, `${path} belongs to user ${uid}`, advice)];
  }
  const shape =
    (mode & 0o022) === 0
      ? ok(check, path)
      : fail(check, `${path} can be written by others`, `chmod go-w ${path}`);
  return [
    shape,
    ...(await placeFindings('disk', path)),
    ...(await lockFindings(path)),
    ...(await supervisorFindings(path)),
  ];
}

/** Whether a directory can be written, and how much. */
export async function placeFindings(check: string, path: string): Promise<Finding[]> {
  try {
    const space = await statfs(path);
    await access(path, constants.W_OK);
    return [spaceFinding(check, space), ...inodeFinding(check, space)];
  } catch (error) {
    switch (errorCode(error)) {
      case 'ENOENT':
        return [ok(check, `${path} does not exist; the first "ctx serve" makes it`)];
      case 'EROFS': {
        const advice = 'look at the disk and the log of the kernel, then mount it for writing';
        return [fail(check, `${path} is on a read-only file system`, advice)];
      }
      default:
        return [fail(check, messageOf(error), 'run this as the user that serves')];
    }
  }
}

export function spaceFinding(check: string, { bavail, bsize }: Space): Finding {
  const free = bavail * bsize;
  const found = `${(free / LEAST_FREE_BYTES).toFixed(1)} GiB free`;
  if (free === 0) return fail(check, found, 'make room: nothing is done that needs some');
  return free < LEAST_FREE_BYTES
    ? warn(check, found, 'make room: where a log cannot be written, its terminal stands still')
    : ok(check, found);
}

/** Files that should be free: a terminal has some ten. File systems that count none say 0 of 0. */
const LEAST_FREE_FILES = 10_000;

function inodeFinding(check: string, { files, ffree }: Space): Finding[] {
  if (files === 0 || ffree >= LEAST_FREE_FILES) return [];
  return [warn(check, `${ffree} files free of ${files}`, 'delete terminals that have exited')];
}

async function lockFindings(path: string): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const name of ['server.lock', 'supervisor.lock']) {
    const file = join(path, name);
    if (!existsSync(file)) continue;
    try {
      const holder = await lockHolder(file);
      findings.push(ok(name, holder ? `held by process ${holder.pid ?? '?'}` : 'free'));
    } catch (error) {
      findings.push(warn(name, `cannot be looked at: ${messageOf(error)}`, 'run this as its user'));
    }
  }
  return findings;
}

/** What the check of a supervisor is called. */
export const SUPERVISOR_CHECK = 'supervisor';

/** Nothing while no server runs: the next one finds or starts it. */
async function supervisorFindings(stateDir: string): Promise<Finding[]> {
  const holderOf = (lock: string) => lockHolder(join(stateDir, lock)).catch(() => undefined);
  const server = await holderOf(SERVER_LOCK);
  if (server === undefined) return [];
  const supervisor = await holderOf(SUPERVISOR_LOCK);
  if (supervisor === undefined) {
    const found = `none runs, and the server (${processOf(server)}) waits for it`;
    const mode = existsSync(join(stateDir, 'dev')) ? '--dev' : '--config FILE';
    const command = `ctx supervise ${mode} --state-dir ${stateDir}`;
    const advice = `start it: "${command}", or its unit; a server without --supervisor external does that by itself`;
    return [fail(SUPERVISOR_CHECK, found, advice)];
  }
  // One in the server's own process has no socket.
  if (supervisor.pid === server.pid) return [];
  const error = await connectionFailure(supervisorSocket(stateDir));
  if (error === undefined) return [ok(SUPERVISOR_CHECK, `answers, ${processOf(supervisor)}`)];
  const found = `${processOf(supervisor)} does not answer (${errorCode(error)}), and the server waits for it`;
  const advice = 'wait: at its start it looks at every record; if that does not help, see its log';
  return [fail(SUPERVISOR_CHECK, found, advice)];
}

function processOf({ pid }: LockHolder): string {
  return `process ${pid ?? '?'}`;
}

/** Milliseconds for a socket of this host. */
const CONNECT_TIMEOUT_MS = 2_000;

function connectionFailure(path: string): Promise<Error | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (error?: Error) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(error);
    };
    const timer = setTimeout(
      () => end(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })),
      CONNECT_TIMEOUT_MS,
    );
    socket.once('connect', () => end()).once('error', end);
  });
}
