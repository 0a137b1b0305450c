import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { acquireLock } from '../../src/store/lock.js';
import { readRecord } from '../../src/store/metadata.js';
import { resourceDir } from '../../src/store/paths.js';
import { openStateDir } from '../../src/store/stateDir.js';
import {
  endDetachedWhenIdle,
  stopDetached,
  superviseDetached,
  supervisorSocket,
} from '../../src/supervisor/detached.js';
import {
  createInProcessSupervisor,
  type InProcessOptions,
} from '../../src/supervisor/inProcess.js';
import { connectSupervisor } from '../../src/supervisor/socket/socketClient.js';
import { createSpec, lease, silentLog as log } from '../support/registry.js';

const PROGRAM = fileURLToPath(new URL('./detachedSupervisor.mjs', import.meta.url));
const BUILT = fileURLToPath(new URL('../../dist/supervisor/detached.js', import.meta.url));

describe('a detached supervisor', () => {
  let stateDir: string;
  const children: ChildProcess[] = [];

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-detached-'));
  });

  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGKILL');
        await once(child, 'exit');
      }
    }
    await rm(stateDir, { recursive: true, force: true });
  });

  /** Starts one as its own session; answers its process and first line of output, if any. */
  async function start() {
    if (!existsSync(BUILT)) throw new Error('dist/ is not built: run `npm run build` first');
    const child = spawn(process.execPath, [PROGRAM, stateDir], {
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    let errors = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    const exit = once(child, 'close');
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const { value: first } = await lines.next();
    return { child, first, exit, errors: () => errors };
  }

  async function connect() {
    const { id } = await openStateDir(stateDir);
    return connectSupervisor({ path: supervisorSocket(stateDir), stateDirId: id, log });
  }

  /** A terminal of a server that is gone again, whose process heeds no signal that asks. */
  async function heedless() {
    const spec = createSpec([
      'sh',
      '-c',
      'trap "" TERM HUP; echo ready; while :; do sleep 0.1; done',
    ]);
    await using server = await connect();
    const { record } = await server.create(spec);
    const stop = new AbortController();
    const { items, nextSeq } = await server.openOutput(spec.tuple, stop.signal);
    if (nextSeq === 1) for await (const item of items) if (item.kind === 'events') break;
    stop.abort();
    return { tuple: spec.tuple, pid: record.pid };
  }

  it('says where it is, keeps its terminals over the loss of a server, and ends when told', async () => {
    const { child, first, exit } = await start();
    expect(first).toBe(`ready ${supervisorSocket(stateDir)}`);
    expect(await readFile(join(stateDir, 'supervisor.pid'), 'latin1')).toBe(`${child.pid}\n`);
    expect((await stat(supervisorSocket(stateDir))).mode & 0o777).toBe(0o600);
    expect((await stat(join(stateDir, 'supervisor'))).mode & 0o777).toBe(0o700);

    const spec = createSpec(['sleep', '1000']);
    const server = await connect();
    const { record } = await server.create(spec);
    await server[Symbol.asyncDispose]();
    process.kill(child.pid ?? 0, 'SIGHUP');
    await using next = await connect();
    expect((await next.info()).pid).toBe(child.pid);
    expect((await next.get(spec.tuple))?.record).toEqual(record);

    expect(await stopDetached(stateDir, 20_000)).toBe('ended');
    expect(await exit).toEqual([0, null]);
    expect(existsSync(join(stateDir, 'supervisor.pid'))).toBe(false);
    expect(existsSync(join(stateDir, 'supervisor.ending'))).toBe(false);
    expect(existsSync(supervisorSocket(stateDir))).toBe(false);
    expect(existsSync(`/proc/${record.pid}`)).toBe(false);
    expect(await stopDetached(stateDir, 1_000)).toBe('absent');
  });

  it('is found by its pid from the moment on at which it can be connected to', async () => {
    const dir = await openStateDir(stateDir);
    const told = new AbortController();
    const options: InProcessOptions = {
      stateDir: dir.path,
      stateDirId: dir.id,
      isolation: { mode: 'shared-uid', owners: 'any' },
      version: 'test',
      log,
      locator: () => 'test:',
    };
    const supervising = superviseDetached({
      stateDir: dir,
      log,
      signal: told.signal,
      create: () => createInProcessSupervisor(options),
    });
    let isOver = false;
    supervising.finally(() => {
      isOver = true;
    });
    try {
      while (!isOver && !existsSync(supervisorSocket(dir.path))) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(readFileSync(join(stateDir, 'supervisor.pid'), 'utf8')).toBe(`${process.pid}\n`);
    } finally {
      told.abort();
      await supervising;
    }
    expect(existsSync(join(stateDir, 'supervisor.pid'))).toBe(false);
  });

  it('counts as lost, when it cannot be connected to, only where one before it does', async () => {
    const dir = await openStateDir(stateDir);
    await mkdir(join(stateDir, 'supervisor'), 0o700);
    await writeFile(supervisorSocket(dir.path), 'in the way');
    const options: InProcessOptions = {
      stateDir: dir.path,
      stateDirId: dir.id,
      isolation: { mode: 'shared-uid', owners: 'any' },
      version: 'test',
      log,
      locator: () => 'test:',
    };
    const supervising = () =>
      superviseDetached({
        stateDir: dir,
        log,
        signal: new AbortController().signal,
        create: () => createInProcessSupervisor(options),
      });
    const pidFile = join(stateDir, 'supervisor.pid');
    await expect(supervising()).rejects.toThrow('is not a socket');
    expect(existsSync(pidFile)).toBe(false);
    await writeFile(pidFile, '4194304\n', { mode: 0o600 });
    await expect(supervising()).rejects.toThrow('is not a socket');
    expect(existsSync(pidFile)).toBe(true);
  });

  it('leaves no grace to its terminals when it is told twice', async () => {
    const { child, exit } = await start();
    const { tuple, pid } = await heedless();
    child.kill('SIGTERM');
    // It has sent its servers away: what follows is the end of its terminals.
    while (existsSync(supervisorSocket(stateDir))) await delay(5);
    const begin = performance.now();
    child.kill('SIGTERM');
    expect(await exit).toEqual([0, null]);
    expect(performance.now() - begin).toBeLessThan(4_900);
    expect(existsSync(`/proc/${pid}`)).toBe(false);
    expect(await readRecord(resourceDir(stateDir, tuple))).toMatchObject({
      state: 'exited',
      exit: { signal: 'SIGKILL', reason: 'supervisor-stopped' },
    });
  }, 30_000);

  it('is said to have vanished where it was killed while it was to end', async () => {
    const { child, exit } = await start();
    const { tuple } = await heedless();
    const stopped = stopDetached(stateDir, 20_000);
    while (existsSync(supervisorSocket(stateDir))) await delay(5);
    child.kill('SIGKILL');
    expect(await stopped).toBe('vanished');
    expect(await exit).toEqual([null, 'SIGKILL']);
    // Told to end: for a server it is not lost.
    expect(existsSync(join(stateDir, 'supervisor.pid'))).toBe(false);

    const next = await start();
    await using again = await connect();
    expect((await again.get(tuple))?.record).toMatchObject({
      state: 'error',
      exit: { reason: 'supervisor-lost' },
    });
    expect(existsSync(join(stateDir, 'supervisor.ending'))).toBe(false);
    next.child.kill('SIGTERM');
    expect(await next.exit).toEqual([0, null]);
  }, 60_000);

  it('ends when no terminal lives once it was asked to, and not before', async () => {
    const { child, exit } = await start();
    await using server = await connect();
    const first = createSpec(['cat']);
    const second = createSpec(['cat']);
    await server.create(first);
    expect(await endDetachedWhenIdle(stateDir)).toBe(true);
    await server.create(second);
    await server.kill(first.tuple, { lease });
    expect((await server.info()).pid).toBe(child.pid);
    await server.kill(second.tuple, { lease }).catch(() => {});
    expect(await exit).toEqual([0, null]);
    const record = await readRecord(resourceDir(stateDir, second.tuple));
    expect(record.exit).toEqual({ exitCode: 137, signal: 'SIGKILL' });
    expect(await endDetachedWhenIdle(stateDir)).toBe(false);
  });

  it('lets no second one in, and is followed by one after kill -9, whatever it left', async () => {
    const first = await start();
    const second = await start();
    expect(second.first).toBeUndefined();
    expect(await second.exit).toEqual([1, null]);
    expect(second.errors()).toContain(`locked by process ${first.child.pid}`);

    first.child.kill('SIGKILL');
    await first.exit;
    expect(existsSync(join(stateDir, 'supervisor.pid'))).toBe(true);
    expect(existsSync(supervisorSocket(stateDir))).toBe(true);
    const third = await start();
    expect(third.first).toMatch(/^ready /);
    await using server = await connect();
    expect((await server.info()).pid).toBe(third.child.pid);
  });

  it('is not taken for a process that has its old pid, or for a server that supervises', async () => {
    const pidFile = join(stateDir, 'supervisor.pid');
    await openStateDir(stateDir);
    await writeFile(pidFile, `${process.pid}\n`);
    expect(await stopDetached(stateDir, 1_000)).toBe('absent');
    expect(existsSync(pidFile)).toBe(false);
    await using _lock = await acquireLock(join(stateDir, 'supervisor.lock'));
    await expect(stopDetached(stateDir, 1_000)).rejects.toThrow(
      `locked by process ${process.pid}, which is no detached supervisor`,
    );
    await writeFile(pidFile, '999999999\n');
    await expect(stopDetached(stateDir, 1_000)).rejects.toThrow('no detached supervisor');
  });

  it('that was killed is not signalled by its pid while the next one is taking the lock', async () => {
    await openStateDir(stateDir);
    const lock = join(stateDir, 'supervisor.lock');
    const bystander = spawn('sleep', ['60'], { stdio: 'ignore' });
    children.push(bystander);
    await writeFile(join(stateDir, 'supervisor.pid'), `${bystander.pid}\n`);
    await writeFile(lock, `${bystander.pid}\n`);
    const next = spawn('flock', [lock, 'sh', '-c', 'echo held; exec cat'], { stdio: 'pipe' });
    children.push(next);
    const exit = once(next, 'exit');
    await once(next.stdout, 'data');
    await expect(stopDetached(stateDir, 1_000)).rejects.toThrow('locked by another process');
    next.stdin.end();
    await exit;
    expect(bystander.signalCode).toBeNull();
  });
});
