/** Case 30: the disk is full while output flows, and has room again. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Client, connect } from '../../src/client/connect.js';
import { PauseReason, TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { CTX, type DevServer, startDevServer } from '../support/devServer.js';
import { owner } from '../support/registry.js';
import { skipAloud } from '../support/skipAloud.js';
import { smallDisk } from '../support/smallDisk.js';
import { seqsTo, watchAll } from '../support/streams.js';

const run = promisify(execFile);

const MIB = 1024 * 1024;
/** The reserve of the audit trail takes 16 MiB. */
const AUDIT_BYTES = 20 * MIB;

/** What the flood prints: its log takes more, and more than the disk has to begin with. */
const FLOOD_LINE = '0123456789abcde\n';
const FLOOD_BYTES = 16 * MIB;

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { code?: string; reason?: string; message?: string }) => error,
  );

const ref = (id: string) => ({ terminal: { id } });

/** A server with a flood about to begin, two terminals to end, one to type to, and a token to revoke. */
class Scene implements AsyncDisposable {
  private constructor(
    private readonly server: DevServer,
    readonly stateDir: string,
    readonly client: Client,
    readonly helper: Client,
    /** Transcripts of everything, from the start to the end. */
    readonly watched: Promise<Awaited<ReturnType<typeof watchAll>>[]>,
  ) {}

  static async start(stateDir: string): Promise<Scene> {
    const server = await startDevServer(stateDir);
    try {
      return await Scene.begin(server, stateDir);
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  private static async begin(server: DevServer, stateDir: string): Promise<Scene> {
    const client = await server.client();
    const create = (id: string, script: string) =>
      client.terminals.createTerminal({ agent: 'a', id, command: ['bash', '-c', script] });
    const flood = `yes ${FLOOD_LINE.trim()} | head -c ${FLOOD_BYTES}`;
    await create('flood', `stty -opost -echo; echo ready; read; ${flood}; exit 7`);
    await create('stopped', 'echo ready; exec sleep 1000');
    await create('killed', 'trap "" TERM HUP; echo ready; while :; do sleep 1000; done');
    await create('typed', 'stty -echo; echo ready; while read line; do echo "got $line"; done');
    const ids = ['flood', 'stopped', 'killed', 'typed'];
    const watched = Promise.all(
      ids.map((id) => watchAll(client, ref(id), AbortSignal.timeout(120_000))),
    );
    watched.catch(() => {});
    for (const id of ids) {
      await client.terminals.wait({ ...ref(id), condition: { case: 'pattern', value: 'ready' } });
    }
    const { token } = await client.grants.delegate({
      actor: 'helper',
      grants: [
        {
          id: 'g1',
          parentGrantId: 'dev',
          actions: ['terminal.read'],
          resource: { owner, agent: '*', session: '*', terminal: '*' },
        },
      ],
    });
    const helper = connect({
      address: server.settings.GRANTTY_ADDRESS ?? '',
      ca: await readFile(server.settings.GRANTTY_CA ?? ''),
      token: async () => token,
    });
    await helper.terminals.getTerminal(ref('flood'));
    return new Scene(server, stateDir, client, helper, watched);
  }

  write(id: string, text: string) {
    return this.client.terminals.write({ ...ref(id), data: Buffer.from(text) });
  }

  async get(id: string) {
    return (await this.client.terminals.getTerminal(ref(id))).terminal;
  }

  /** By what the server tells: asking again and again would fill the trail. */
  async untilUnwritable(id: string): Promise<void> {
    for await (const event of this.client.watchTerminals()) {
      if (event.case !== 'snapshot' && event.case !== 'changed') continue;
      const { terminal } = event.value;
      if (terminal?.ref?.id === id && terminal.paused === PauseReason.LOG_UNWRITABLE) return;
    }
  }

  create(id: string) {
    const command = ['/bin/echo', 'there is room'];
    return this.client.terminals.createTerminal({ agent: 'a', id, command });
  }

  /**
   * Creates until one is refused for that reason. What an append of the flood that failed gives back, or
   * what is left of a page of the trail, may have room for some: those are made, and there to stay.
   */
  async createUntil(reason: string) {
    const made: string[] = [];
    for (let n = 0; ; n += 1) {
      const id = `more-${n}`;
      const failure = await failureOf(this.create(id));
      if (failure?.reason === reason || n === 50) return { made, refused: id, failure };
      if (failure === undefined) made.push(id);
    }
  }

  dirOf(id: string): string {
    return join(this.stateDir, 'home', owner, 'agent/a/session/default/terminal', id);
  }

  /** Revoke, stop and kill, each with its effect, whatever the state of the disk. */
  async endThings(): Promise<void> {
    await this.helper.grants.revoke({});
    expect(await failureOf(this.helper.terminals.getTerminal(ref('flood')))).toMatchObject({
      reason: 'GRANT_REVOKED',
    });
    const pidOf = async (id: string) =>
      Number(JSON.parse(await readFile(join(this.dirOf(id), 'meta.json'), 'utf8')).pid);
    const pids = [await pidOf('stopped'), await pidOf('killed')];
    expect(await this.client.terminals.stop(ref('stopped'))).toMatchObject({ survivors: [] });
    expect(await this.client.terminals.kill(ref('killed'))).toMatchObject({ survivors: [] });
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  }

  /** There is room again: the flood ends, every byte is there, every end on record once. */
  async goesOn(): Promise<void> {
    expect(await failureOf(this.create('late'))).toBeUndefined();
    await this.write('typed', 'after\n');
    await this.client.terminals.wait({
      ...ref('typed'),
      condition: { case: 'pattern', value: 'got after' },
    });
    await this.client.terminals.wait({ ...ref('flood'), condition: { case: 'exit', value: true } });
    await this.client.terminals.kill(ref('typed'));
    const [flood, stopped, killed, typed] = await this.watched;
    const expected = Buffer.from(`ready\n${FLOOD_LINE.repeat(FLOOD_BYTES / FLOOD_LINE.length)}`);
    expect(flood?.output.equals(expected)).toBe(true);
    expect(flood?.exitCode).toBe(7);
    for (const [at, id] of ['flood', 'stopped', 'killed', 'typed'].entries()) {
      const seen = [flood, stopped, killed, typed][at];
      expect(seen?.seqs).toEqual(seqsTo(seen?.seqs.length ?? 0));
      expect(seen?.kinds.filter((kind) => kind === 'exited')).toHaveLength(1);
      const lines = (await readFile(join(this.dirOf(id), 'events.jsonl'), 'utf8')).trimEnd();
      const events = lines.split('\n').map((line) => JSON.parse(line));
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
      expect(events.filter(({ type }) => type === 'process.exit')).toHaveLength(1);
      expect(seen?.seqs).toHaveLength(events.length);
      const found = await this.get(id);
      expect(found).toMatchObject({ state: TerminalState.EXITED });
      expect(found?.paused).toBeUndefined();
    }
    const { stdout } = await run(process.execPath, [
      ...[CTX, 'audit', 'verify', '--state-dir', this.stateDir],
    ]);
    expect(stdout).toContain('sound');
    for (const id of ['stopped', 'killed']) expect(await this.recorded(id)).toBe(1);
  }

  /** How often the record says that this terminal was stopped or killed. */
  private async recorded(id: string): Promise<number> {
    const dir = join(this.stateDir, 'audit');
    const files = (await readdir(dir)).filter((name) => name.endsWith('.jsonl'));
    const texts = await Promise.all(files.map((name) => readFile(join(dir, name), 'utf8')));
    return texts
      .join('')
      .split('\n')
      .filter((line) => /"action":"terminal\.(stop|kill)"/.test(line))
      .filter((line) => line.includes(`"${id}"`)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.helper.close();
    await this.server[Symbol.asyncDispose]();
  }
}

describe('a disk that is full while output flows (case 30)', () => {
  it('with the audit trail on it: revoke, stop and kill get through, all else is refused, and all goes on with room', async () => {
    await using disk = await smallDisk(AUDIT_BYTES + 28 * MIB);
    if (disk === undefined) return skipAloud('needs root and mount(8)');
    await using scene = await Scene.start(join(disk.path, 'state'));
    await scene.write('flood', '\n');
    await disk.fill('fill');
    const refused = { code: 'UNAVAILABLE', reason: 'AUDIT_UNAVAILABLE' };
    const { made, failure } = await scene.createUntil(refused.reason);
    expect(failure).toMatchObject(refused);
    expect(await failureOf(scene.write('typed', 'lost\n'))).toMatchObject(refused);
    expect(await failureOf(scene.get('flood'))).toMatchObject(refused);
    await scene.endThings();
    await rm(join(disk.path, 'fill'));
    await untilAnswered(() => scene.get('flood'));
    await scene.goesOn();
    const names = ['flood', 'killed', 'late', 'stopped', 'typed', ...made];
    expect((await readdir(join(scene.dirOf('flood'), '..'))).sort()).toEqual(names.sort());
    const [, , , typed] = await scene.watched;
    expect(typed?.output.toString()).not.toContain('lost');
  }, 300_000);

  it('with the audit trail elsewhere: the status says so, what needs no room is done, and what does is refused whole', async () => {
    await using disk = await smallDisk(28 * MIB);
    if (disk === undefined) return skipAloud('needs root and mount(8)');
    const stateDir = join(disk.path, 'state');
    await using _audit = await auditDisk(stateDir);
    await using scene = await Scene.start(stateDir);
    // Before the flood, which would fit the disk if it were quicker.
    await disk.fill('fill');
    await scene.write('flood', '\n');
    await scene.untilUnwritable('flood');
    expect(await scene.get('flood')).toMatchObject({ paused: PauseReason.LOG_UNWRITABLE });
    const { refused, failure } = await scene.createUntil('SUPERVISOR_UNAVAILABLE');
    expect(failure).toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
      message: expect.stringContaining('no room left on the disk'),
    });
    expect(await failureOf(scene.get(refused))).toMatchObject({ reason: 'TERMINAL_NOT_FOUND' });
    await scene.write('typed', 'meanwhile\n');
    await scene.endThings();
    await rm(join(disk.path, 'fill'));
    await scene.goesOn();
    const [, , , typed] = await scene.watched;
    expect(typed?.output.toString()).toContain('got meanwhile');
  }, 300_000);
});

/** A disk of its own for the trail of a state directory. */
async function auditDisk(stateDir: string): Promise<AsyncDisposable> {
  const audit = join(stateDir, 'audit');
  await mkdir(audit, { recursive: true, mode: 0o700 });
  await chmod(stateDir, 0o700);
  await run('mount', ['-t', 'tmpfs', '-o', `size=${AUDIT_BYTES},mode=700`, 'tmpfs', audit]);
  return {
    async [Symbol.asyncDispose]() {
      await run('umount', ['-l', audit]);
    },
  };
}

/** The trail looks again every second whether there is room. */
async function untilAnswered(call: () => Promise<unknown>): Promise<void> {
  while ((await failureOf(call())) !== undefined) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}
