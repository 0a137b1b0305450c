import { EventEmitter, once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Logger, pino } from 'pino';
import { howToEnd, openOutside } from '../../src/app/outsideSupervisor.js';
import { openStateDir } from '../../src/store/stateDir.js';
import { stopDetached } from '../../src/supervisor/detached.js';

/** Started in place of `ctx supervise`; needs dist/. */
const PROGRAM = fileURLToPath(new URL('../supervisor/detachedSupervisor.mjs', import.meta.url));

describe('a supervisor that the host gives no process for', () => {
  const { execPath } = process;
  const main = process.argv[1] ?? '';
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'grantty-outside-'));
    process.argv[1] = PROGRAM;
  });

  afterEach(async () => {
    process.execPath = execPath;
    process.argv[1] = main;
    await stopDetached(dir, 20_000);
    await rm(dir, { recursive: true });
  });

  async function open(logger: Logger, onChange: (connected: boolean) => void = () => {}) {
    return openOutside({
      stateDir: await openStateDir(dir),
      logger,
      mayStart: true,
      onChange,
      superviseArguments: [dir],
    });
  }

  it('fails the start of a server, which says what is missing', async () => {
    process.execPath = join(dir, 'node');
    await expect(open(pino({ level: 'silent' }))).rejects.toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
      message: expect.stringContaining(`no supervisor could be started: ${dir}/node gives ENOENT`),
    });
  });

  it('is tried again, while the server goes on, where another one was lost', async () => {
    const happened = new EventEmitter();
    const lines: string[] = [];
    const logger = pino(
      { level: 'info' },
      {
        write(line) {
          lines.push(line);
          if (line.includes('no other could be started')) happened.emit('refused');
        },
      },
    );
    await using _supervisor = await open(logger, (connected) => {
      if (connected) happened.emit('again');
    });
    const lost = Number(await readFile(join(dir, 'supervisor.pid'), 'latin1'));
    process.execPath = join(dir, 'node');
    process.kill(lost, 'SIGKILL');
    await once(happened, 'refused');
    process.execPath = execPath;
    await once(happened, 'again');
    expect(Number(await readFile(join(dir, 'supervisor.pid'), 'latin1'))).not.toBe(lost);
    expect(existsSync(`/proc/${lost}`)).toBe(false);
    // Both processes are in the log, and neither as the other.
    expect(lines[0]).toContain(`"supervisor":${lost},`);
    expect(lines.filter((line) => line.split('"pid":').length !== 2)).toEqual([]);
  }, 30_000);
});

describe('a supervisor that was told to end', () => {
  const main = process.argv[1] ?? '';
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'grantty-told-'));
    process.argv[1] = PROGRAM;
  });

  afterEach(async () => {
    process.argv[1] = main;
    await stopDetached(dir, 20_000);
    await rm(dir, { recursive: true });
  });

  it.each([
    ['the server that started it', true, /until this server is started again/],
    ['the server that somebody else starts one for', false, /until whoever starts it/],
  ])(
    'is said so in the log of %s, with how to go on',
    async (_, mayStart, how) => {
      const happened = new EventEmitter();
      const said: string[] = [];
      const logger = pino(
        { level: 'warn' },
        {
          write(line) {
            said.push((JSON.parse(line) as { msg: string }).msg);
            if (line.includes('was told to end')) happened.emit('told');
          },
        },
      );
      const options = {
        stateDir: await openStateDir(dir),
        logger,
        onChange: () => {},
        superviseArguments: [dir],
      };
      await using _starts = await openOutside({ ...options, mayStart: true });
      await using _server = await openOutside({ ...options, mayStart });
      said.length = 0;
      const told = once(happened, 'told');
      expect(await stopDetached(dir, 20_000)).toBe('ended');
      await told;
      expect(said.join('\n')).toMatch(how);
      expect(said.filter((line) => line.includes('another one was started'))).toEqual([]);
      expect(existsSync(join(dir, 'supervisor.pid'))).toBe(false);
    },
    30_000,
  );
});

describe('advice on a supervisor that is there', () => {
  it('is the command for one that servers start, and for another whoever starts it', async () => {
    const stateDir = await openStateDir(await mkdtemp(join(tmpdir(), 'grantty-advice-')));
    try {
      expect(howToEnd({ stateDir, mayStart: true })).toContain(
        `"ctx supervise --stop --state-dir ${stateDir.path}"`,
      );
      expect(howToEnd({ stateDir, mayStart: false })).not.toContain('--stop');
    } finally {
      await rm(stateDir.path, { recursive: true });
    }
  });
});
