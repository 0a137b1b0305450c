import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Client } from '../../src/client/connect.js';
import { type DevServer, startDevServer } from '../support/devServer.js';
import { makePastTerminals, PRINTED } from '../support/pastTerminals.js';
import { watchAll } from '../support/streams.js';

const COUNT = 10_000;
const OWNER = String(process.getuid?.() ?? 0);

/**
 * What it may cost to have them, server and supervisor together: the records of all, read once, and
 * for a moment the messages in which they cross from one to the other.
 */
const MOST_BYTES_EACH = 30 * 1024;

function processOf(pid: number) {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
  const ticks = Number(stat[11]) + Number(stat[12]);
  return { rss: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024, cpuSeconds: ticks / 100 };
}

describe('a start with 10,000 exited resources on disk', () => {
  let stateDir: string;
  let ids: readonly string[];
  let server: DevServer;
  let client: Client;
  let supervisorPid: number;
  let readyMs: number;

  const start = async (dir: string) => {
    const begin = performance.now();
    const started = await startDevServer(dir);
    const pid = Number(await readFile(join(dir, 'supervisor.pid'), 'utf8'));
    return { started, pid, ms: performance.now() - begin };
  };
  const both = () => [processOf(server.pid), processOf(supervisorPid)] as const;

  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-many-'));
    ids = makePastTerminals(stateDir, OWNER, COUNT);
    ({ started: server, pid: supervisorPid, ms: readyMs } = await start(stateDir));
    client = await server.client();
  }, 300_000);

  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true });
  }, 60_000);

  /** All ids by pages, with what happens after the first of them. */
  async function listed(pageSize: number, afterFirst = async () => {}): Promise<string[]> {
    const found: string[] = [];
    let pageToken = '';
    do {
      const page = await client.terminals.listTerminals({ pageSize, pageToken });
      found.push(...page.terminals.map(({ ref }) => ref?.id ?? ''));
      if (pageToken === '') await afterFirst();
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    return found;
  }

  it('is soon over, and costs little memory', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'grantty-none-'));
    const empty = await start(dir);
    const base = [processOf(empty.started.pid), processOf(empty.pid)] as const;
    await empty.started[Symbol.asyncDispose]();
    await rm(dir, { recursive: true });
    const [ofServer, ofSupervisor] = both();
    const grown = ofServer.rss + ofSupervisor.rss - base[0].rss - base[1].rss;
    const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(0);
    process.stderr.write(
      `ready with ${COUNT} exited resources after ${readyMs.toFixed(0)} ms (none: ${empty.ms.toFixed(0)}); ` +
        `CPU of the supervisor ${ofSupervisor.cpuSeconds} s (none: ${base[1].cpuSeconds}); RSS server ` +
        `${mib(base[0].rss)} -> ${mib(ofServer.rss)}, supervisor ${mib(base[1].rss)} -> ${mib(ofSupervisor.rss)} MiB\n`,
    );
    expect(grown).toBeLessThan(COUNT * MOST_BYTES_EACH);
  }, 60_000);

  it('lists them all, in order, in pages that stay put while terminals come and go', async () => {
    const begin = performance.now();
    const before = both();
    const found = await listed(1_000, async () => {
      await client.terminals.deleteTerminal({ terminal: { id: ids[0] ?? '' } });
      await client.terminals.createTerminal({ agent: 'a', id: 'a-new', command: ['/bin/true'] });
    });
    expect(found).toEqual(ids);
    const [ofServer, ofSupervisor] = both();
    const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(0);
    process.stderr.write(
      `${COUNT} listed by pages of 1,000 in ${(performance.now() - begin).toFixed(0)} ms; ` +
        `CPU server ${(ofServer.cpuSeconds - before[0].cpuSeconds).toFixed(2)}, supervisor ` +
        `${(ofSupervisor.cpuSeconds - before[1].cpuSeconds).toFixed(2)} s; RSS then server ` +
        `${mib(ofServer.rss)}, supervisor ${mib(ofSupervisor.rss)} MiB\n`,
    );
  }, 300_000);

  it('knows the history of each', async () => {
    for (const i of [1, 4_999, 9_999]) {
      const terminal = { id: ids[i] ?? '' };
      const { terminal: found } = await client.terminals.getTerminal({ terminal });
      expect(found).toMatchObject({ firstSeq: 1n, nextSeq: 3n, labels: { number: String(i) } });
      const { output, exitCode } = await watchAll(client, { terminal });
      expect([output.toString(), exitCode]).toEqual([PRINTED, 0]);
    }
  });

  it('finds the same again after another start of both', async () => {
    await client.terminals.wait({
      terminal: { id: 'a-new' },
      condition: { case: 'exit', value: true },
    });
    await server[Symbol.asyncDispose]();
    ({ started: server, pid: supervisorPid } = await start(stateDir));
    client = await server.client();
    expect(await listed(1_000)).toEqual(['a-new', ...ids.slice(1)]);
  }, 300_000);
});
