import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '../../src/client/connect.js';
import type { WatchResponse } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { type DevServer, startDevServer } from '../support/devServer.js';

/** A multiple of the line's bytes. The bounds below hold whatever this is: 1 GB was the report's. */
const FLOOD_BYTES = Number(process.env.GRANTTY_FLOOD_BYTES ?? 200_000_000);
const LINE = '0123456789abcde\n';
const FLOOD = `yes ${LINE.trim()} | head -c ${FLOOD_BYTES}`;

/** What a flood and a stopped watcher may cost a process: windows of HTTP/2, and what is in flight. */
const MOST_GROWTH_BYTES = 100 * 1024 * 1024;

/** Milliseconds that a slow watcher sleeps, and how often it does so: while it sleeps its windows fill. */
const SLEEP_MS = 200;
const SLEEPS = 10;

const TIMEOUT_MS = 120_000 + FLOOD_BYTES / 2_000;

/** What is seen of it, the echo of the line that starts it before it. */
function wholeFlood(): { readonly bytes: number; readonly hash: string } {
  const echo = '\r\n';
  const hash = createHash('sha256').update(echo);
  const block = Buffer.from(LINE.repeat(65_536));
  for (let left = FLOOD_BYTES; left > 0; left -= block.length) {
    hash.update(block.subarray(0, Math.min(left, block.length)));
  }
  return { bytes: FLOOD_BYTES + echo.length, hash: hash.digest('hex') };
}

const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(0);
const megabytes = (bytes: number) => (bytes / 1e6).toFixed(0);

describe(`${megabytes(FLOOD_BYTES)} MB of output`, () => {
  let stateDir: string;
  let server: DevServer;
  let pids: Readonly<Record<string, number>>;

  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-slow-'));
    server = await startDevServer(stateDir);
    const supervisor = Number(await readFile(join(stateDir, 'supervisor.pid'), 'utf8'));
    pids = { server: server.pid, supervisor };
  }, 60_000);

  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true });
  }, 60_000);

  function residentBytes(pid: number): number {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** Looks at the memory of both processes until told to stop; tells how far it went up. */
  function watchMemory() {
    const before = Object.values(pids).map(residentBytes);
    const highest = [...before];
    const timer = setInterval(() => {
      for (const [i, pid] of Object.values(pids).entries()) {
        highest[i] = Math.max(highest[i] ?? 0, residentBytes(pid));
      }
    }, 50);
    return () => {
      clearInterval(timer);
      return Object.keys(pids).map((name, i) => ({
        name,
        from: before[i] ?? 0,
        to: highest[i] ?? 0,
      }));
    };
  }

  function expectFlat(memory: ReturnType<ReturnType<typeof watchMemory>>, what: string): void {
    const told = memory.map(({ name, from, to }) => `${name} ${mib(from)} -> ${mib(to)} MiB`);
    process.stderr.write(`${what}; RSS at most ${told.join(', ')}\n`);
    for (const { from, to } of memory) expect(to - from).toBeLessThan(MOST_GROWTH_BYTES);
  }

  async function read(
    stream: AsyncIterator<WatchResponse>,
    onOutput: (bytes: number) => void | Promise<void> = () => {},
  ) {
    const hash = createHash('sha256');
    let bytes = 0;
    for (;;) {
      const { done, value } = await stream.next();
      if (done) return { bytes, hash: hash.digest('hex') };
      if (value.event.case !== 'output') continue;
      hash.update(value.event.value.data);
      bytes += value.event.value.data.length;
      await onOutput(bytes);
    }
  }

  /** Calls one after the other until the flood is over; tells how long they took. */
  async function callMeanwhile(client: Client, id: string, flood: Promise<unknown>) {
    let over = false;
    void flood.finally(() => {
      over = true;
    });
    const times: number[] = [];
    while (!over) {
      const begin = performance.now();
      await client.terminals.getTerminal({ terminal: { id } });
      times.push(performance.now() - begin);
      await delay(5);
    }
    times.sort((a, b) => a - b);
    const at = (share: number) => (times[Math.floor(share * (times.length - 1))] ?? 0).toFixed(1);
    return { count: times.length, text: `p50 ${at(0.5)} p99 ${at(0.99)} max ${at(1)} ms` };
  }

  it(
    'past a watcher that stops reading reaches another at its pace, while calls are answered and memory is flat (case 13)',
    async () => {
      // Connections of their own: two streams of one connection share its window.
      const clients = await Promise.all([server.client(), server.client(), server.client()]);
      const [stopped, reading, calling] = clients;
      const terminal = { id: 'flood' };
      const command = ['sh', '-c', `read go; stty -opost; ${FLOOD}`];
      await reading.terminals.createTerminal({ agent: 'a', ...terminal, command });
      const late = stopped.terminals.watch({ terminal })[Symbol.asyncIterator]();
      expect((await late.next()).value.event.case).toBe('started');
      const prompt = reading.terminals.watch({ terminal })[Symbol.asyncIterator]();
      expect((await prompt.next()).value.event.case).toBe('started');

      const memory = watchMemory();
      const begin = performance.now();
      await reading.terminals.write({ terminal, data: Buffer.from('\n') });
      const flood = read(prompt);
      const calls = await callMeanwhile(calling, terminal.id, flood);
      const whole = await flood;
      const seconds = (performance.now() - begin) / 1000;
      expectFlat(
        memory(),
        `${megabytes(FLOOD_BYTES)} MB past a stopped watcher: ${(FLOOD_BYTES / 1e6 / seconds).toFixed(0)} MB/s, ` +
          `${calls.count} calls meanwhile ${calls.text}`,
      );
      expect(whole).toEqual(wholeFlood());
      expect(calls.count).toBeGreaterThan(1);
      expect(await read(late)).toEqual(whole);
    },
    TIMEOUT_MS,
  );

  it(
    'are watched from seq 0 by who reads slowly: to the end, never sent away, memory flat (case 18)',
    async () => {
      const client = await server.client();
      const terminal = { id: 'flood' };
      const memory = watchMemory();
      const stream = client.terminals.watch({ terminal, start: { case: 'after', value: {} } });
      let sleeps = 0;
      const whole = await read(stream[Symbol.asyncIterator](), async (bytes) => {
        if (bytes < (FLOOD_BYTES * sleeps) / SLEEPS) return;
        sleeps += 1;
        await delay(SLEEP_MS);
      });
      expectFlat(memory(), `${megabytes(FLOOD_BYTES)} MB from seq 0 with ${sleeps} stops`);
      expect(sleeps).toBeGreaterThanOrEqual(SLEEPS);
      expect(whole).toEqual(wholeFlood());
    },
    TIMEOUT_MS,
  );
});
