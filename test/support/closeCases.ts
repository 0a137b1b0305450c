/** What closing a session does to its processes: the same for every way to a session. */
import { type ChildProcess, spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DrivenSession, SessionDriver } from './sessionDriver.js';
import { onPath, skipAloud } from './skipAloud.js';

const FREEZER = '/sys/fs/cgroup/freezer';
const LAST_PID = '/proc/sys/kernel/ns_last_pid';
/** Attempts to get a number that another process may get first. */
const ATTEMPTS = 500;

/** One whose end has not been collected yet has ended. */
function lives(pid: number): boolean {
  const stat = `/proc/${pid}/stat`;
  return existsSync(stat) && !/\) [ZX] /.test(readFileSync(stat, 'latin1'));
}

function stateOf(pid: number): string | undefined {
  try {
    return /\) (\S) /.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1];
  } catch {
    return undefined;
  }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** Leaves a zombie in the session that it is started in, and itself leaves everything behind. */
const ZOMBIE_KEEPER = `
import os, sys
if os.fork(): os._exit(0)
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os._exit(0)
os.setsid()
os.chdir("/")
open(sys.argv[1], "w").write(f"{os.getpid()} {child}")
os.closerange(0, 256)
os.execve("/bin/sleep", ["sleep", "1000"], {})
`;

/** @param carrier - how the calls travel, for the test's name */
export function closeCases(carrier: string, open: () => Promise<SessionDriver>): void {
  describe(`closing a session, ${carrier}`, () => {
    let driver: SessionDriver;
    let session: DrivenSession;
    let dir: string;

    beforeAll(async () => {
      driver = await open();
      dir = await mkdtemp(join(tmpdir(), 'grantty-close-'));
    });

    afterAll(async () => {
      await driver[Symbol.asyncDispose]();
      await rm(dir, { recursive: true });
    });

    beforeEach(async () => {
      session = await driver.spawn();
    });

    const file = (name: string) => join(dir, name);
    const pidOf = async (name: string) => Number((await readFile(file(name), 'utf8')).trim());
    const started = (name: string) =>
      until(() => existsSync(file(name)) && readFileSync(file(name), 'latin1') !== '');

    async function closes(): Promise<void> {
      expect(await session.close()).toBe(true);
      expect((await driver.list()).map(({ id }) => id)).not.toContain(session.id);
    }

    it('ends a background job that ignores SIGTERM and SIGHUP', async () => {
      await session.send(
        `(trap '' TERM HUP; echo $BASHPID > ${file('a')}; while :; do sleep 1; done) &`,
      );
      await started('a');
      await closes();
      expect(lives(await pidOf('a'))).toBe(false);
    });

    it('ends a child in a session of its own, and one that has left its parents too', async () => {
      await session.send(
        `setsid sh -c 'echo $$ > ${file('b')}; exec sleep 1000' & (setsid sh -c 'echo $$ > ${file('c')}; exec sleep 1000' &)`,
      );
      await started('b');
      await started('c');
      await closes();
      expect(lives(await pidOf('b'))).toBe(false);
      expect(lives(await pidOf('c'))).toBe(false);
    });

    it('ends what is forked while it closes', async () => {
      // Each of them ends by itself too, so that nothing is left should the close fail.
      const forking = `trap "" TERM HUP; end=$((SECONDS + 20)); while ((SECONDS < end)); do sleep 5 & : > ${file('forks')}; sleep 0.02; done`;
      await session.send(`bash -c '${forking}' & sleep 0.1`);
      await until(() => existsSync(file('forks')));
      const nonce = nonceOf(session);
      await closes();
      expect(carriers(nonce)).toEqual([]);
    });

    it('does not wait for a process group in which all have ended', async () => {
      if (!onPath('python3')) return skipAloud('python3 is not installed');
      await writeFile(file('keeper.py'), ZOMBIE_KEEPER);
      await session.send(`python3 ${file('keeper.py')} ${file('keeper')}`);
      await started('keeper');
      const [keeper = 0, zombie = 0] = (await readFile(file('keeper'), 'utf8'))
        .split(' ')
        .map(Number);
      try {
        await until(() => stateOf(zombie) === 'Z');
        const sessionOf = readFileSync(`/proc/${zombie}/stat`, 'latin1')
          .split(') ')[1]
          ?.split(' ')[3];
        expect(Number(sessionOf)).toBe(session.pid);
        await closes();
        expect(stateOf(zombie)).toBe('Z');
      } finally {
        process.kill(keeper, 'SIGKILL');
      }
    });

    it('leaves alone a stranger that has got the number of the shell', async () => {
      const { pid } = session;
      if (pid === undefined) throw new Error('the session has no process');
      expect((await session.send('exit')).waitReason).toBe('session_exit');
      const stranger = await strangerOf(pid);
      if (!stranger)
        return skipAloud('the number of the shell could not be given to another process');
      try {
        await until(() => stateOf(pid) === 'S');
        await closes();
        expect(lives(pid)).toBe(true);
        expect(stranger.signalCode).toBeNull();
      } finally {
        stranger.kill('SIGKILL');
      }
    });

    it('names what survives, keeps the session, and can be tried again', async () => {
      const cgroup = freezer();
      if (!cgroup) return skipAloud('a process can be made to survive SIGKILL in a freezer alone');
      await session.send(`sleep 1000 & echo $! > ${file('frozen')}`);
      await started('frozen');
      const pid = await pidOf('frozen');
      try {
        writeFileSync(join(cgroup, 'cgroup.procs'), `${pid}`);
        writeFileSync(join(cgroup, 'freezer.state'), 'FROZEN');
        await until(() => readFileSync(join(cgroup, 'freezer.state'), 'latin1') === 'FROZEN\n');
        expect(await driver.survivorsOf(session)).toEqual([pid]);
        expect((await driver.list()).map(({ id }) => id)).toContain(session.id);
      } finally {
        writeFileSync(join(cgroup, 'freezer.state'), 'THAWED');
        await until(() => !lives(pid));
        await until(() => readFileSync(join(cgroup, 'cgroup.procs'), 'latin1') === '');
        rmdirSync(cgroup);
      }
      await closes();
    }, 60_000);
  });
}

function nonceOf({ pid }: DrivenSession): string {
  const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
  const nonce = /CTX_INSTANCE=([^\0]+)/.exec(environment)?.[1];
  if (nonce === undefined) throw new Error('the shell has no instance');
  return nonce;
}

/** Live processes that carry this mark. */
function carriers(nonce: string): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
        return environment.includes(`CTX_INSTANCE=${nonce}`) && lives(pid);
      } catch {
        return false;
      }
    });
}

/** A process of ours, leader of a session, with that number; the kernel gives the one after the last. */
async function strangerOf(pid: number): Promise<ChildProcess | undefined> {
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      writeFileSync(LAST_PID, `${pid - 1}`);
      const stranger = spawn('/bin/sleep', ['1000'], { detached: true, stdio: 'ignore' });
      const ended = new Promise((resolve) => stranger.once('exit', resolve));
      if (stranger.pid === pid) return stranger;
      stranger.kill('SIGKILL');
      await ended;
    }
  } catch {
    // Not ours to write.
  }
  return undefined;
}

/** A new freezer (cgroup v1), which the caller removes. */
function freezer(): string | undefined {
  const dir = join(FREEZER, `grantty-test-${process.pid}`);
  try {
    mkdirSync(dir);
    writeFileSync(join(dir, 'freezer.state'), 'THAWED');
    return dir;
  } catch {
    return undefined;
  }
}
