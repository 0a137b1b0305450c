import { existsSync, readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '../../src/client/connect.js';
import { type DevServer, startDevServer } from '../support/devServer.js';
import { watchAll } from '../support/streams.js';

/**
 * Terminals made, ended and deleted before the first look and before the second. The full run is
 * GRANTTY_CHURN=5000,20000 and takes a quarter of an hour.
 */
const [FIRST = 0, SECOND = 0] = (process.env.GRANTTY_CHURN ?? '250,1000').split(',').map(Number);
const AT_ONCE = 8;
const MOST_HEAP_GROWTH_BYTES = 5 * 1024 * 1024;
/** Milliseconds for what ends by itself: connections, drains, the client's streams. */
const SETTLE_MS = 30_000;
const POLL_MS = 100;

const PRELOAD = new URL('../../bench/support/preload/memory.mjs', import.meta.url);

interface Look {
  readonly heap: number;
  readonly descriptors: number;
  /** How many of each kind, see process.getActiveResourcesInfo. */
  readonly handles: Readonly<Record<string, number>>;
}

describe(`${SECOND} terminals that are made, end and are deleted`, () => {
  let stateDir: string;
  let told: string;
  let server: DevServer;
  let client: Client;
  let made = 0;

  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-churn-'));
    told = join(stateDir, 'told');
    server = await startDevServer(
      stateDir,
      [],
      ['--expose-gc', '--import', `${PRELOAD}?file=${told}`],
    );
    client = await server.client();
  }, 60_000);

  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true });
  }, 60_000);

  async function processes(): Promise<Readonly<Record<string, number>>> {
    const supervisor = Number(await readFile(join(stateDir, 'supervisor.pid'), 'utf8'));
    return { server: server.pid, supervisor };
  }

  async function look(pid: number): Promise<Look> {
    const file = `${told}-${pid}`;
    await rm(file, { force: true });
    process.kill(pid, 'SIGWINCH');
    while (!existsSync(file)) {
      if (!existsSync(`/proc/${pid}`)) throw new Error(`process ${pid} has ended`);
      await delay(POLL_MS);
    }
    const { heapUsed, external, resources } = JSON.parse(await readFile(file, 'utf8'));
    const handles: Record<string, number> = {};
    for (const kind of resources as string[]) {
      // What comes and goes by itself: the look's own timer, reads of the moment.
      if (kind !== 'Timeout' && !kind.startsWith('FSReq')) handles[kind] = (handles[kind] ?? 0) + 1;
    }
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    return { heap: heapUsed + external, descriptors, handles };
  }

  async function looks(): Promise<Record<string, Look>> {
    const found: Record<string, Look> = {};
    for (const [name, pid] of Object.entries(await processes())) found[name] = await look(pid);
    return found;
  }

  /** One terminal's life, followed in one of the ways there are. */
  async function life(i: number): Promise<void> {
    const terminal = { id: `t${i}` };
    const command = ['/bin/echo', 'done'];
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command, requestId: `c${i}` });
    if (i % 3 === 0) await watchAll(client, { terminal });
    else await client.terminals.wait({ terminal, condition: { case: 'exit', value: true } });
    await client.terminals.deleteTerminal({ terminal });
  }

  async function churn(count: number): Promise<void> {
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        while (made < count) {
          made += 1;
          await life(made);
        }
      }),
    );
  }

  it(
    'leave no descriptor, no handle and no memory behind',
    async () => {
      await churn(FIRST);
      const before = await looks();
      const begin = performance.now();
      await churn(SECOND);
      const rate = (SECOND - FIRST) / ((performance.now() - begin) / 1000);
      const counts = (found: Record<string, Look>) =>
        Object.entries(found).map(([name, { descriptors, handles }]) => ({
          name,
          descriptors,
          handles,
        }));
      let after = await looks();
      const deadline = performance.now() + SETTLE_MS;
      while (
        JSON.stringify(counts(after)) !== JSON.stringify(counts(before)) &&
        performance.now() < deadline
      ) {
        after = await looks();
      }
      for (const [name, { heap, descriptors }] of Object.entries(after)) {
        const mib = (bytes = 0) => (bytes / 2 ** 20).toFixed(1);
        process.stderr.write(
          `${name}: ${FIRST} -> ${SECOND} terminals (${rate.toFixed(0)}/s): heap ${mib(before[name]?.heap)} -> ` +
            `${mib(heap)} MiB, descriptors ${before[name]?.descriptors} -> ${descriptors}\n`,
        );
      }
      expect(counts(after)).toEqual(counts(before));
      for (const [name, { heap }] of Object.entries(after)) {
        expect(heap - (before[name]?.heap ?? 0)).toBeLessThan(MOST_HEAP_GROWTH_BYTES);
      }
      expect((await client.terminals.listTerminals({})).terminals).toEqual([]);
    },
    (60 + SECOND) * 1000,
  );
});
