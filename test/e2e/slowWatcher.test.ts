import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WatchResponse } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { type DevServer, startDevServer } from '../support/devServer.js';

const FLOOD_BYTES = 200_000_000;

/** What a stopped watcher may cost the server: its HTTP/2 window, and what is in flight. Bytes. */
const MOST_GROWTH_BYTES = 100 * 1024 * 1024;

describe('a watcher that stops reading for 200 MB', () => {
  let stateDir: string;
  let server: DevServer;

  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-slow-'));
    server = await startDevServer(stateDir);
  });

  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true });
  });

  function residentBytes(): number {
    const status = readFileSync(`/proc/${server.pid}/status`, 'latin1');
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  async function read(stream: AsyncIterator<WatchResponse>) {
    const hash = createHash('sha256');
    let bytes = 0;
    for (;;) {
      const { done, value } = await stream.next();
      if (done) return { bytes, hash: hash.digest('hex') };
      if (value.event.case !== 'output') continue;
      hash.update(value.event.value.data);
      bytes += value.event.value.data.length;
    }
  }

  it('gets every byte when it reads on, costs the server little, and slows nobody', async () => {
    // Connections of their own: two streams of one connection share its window.
    const [stopped, reading] = [await server.client(), await server.client()];
    const terminal = { id: 'flood' };
    const script = `stty -opost; read go; yes 0123456789abcde | head -c ${FLOOD_BYTES}`;
    await reading.terminals.createTerminal({
      agent: 'a',
      ...terminal,
      command: ['sh', '-c', script],
    });
    const late = stopped.terminals.watch({ terminal })[Symbol.asyncIterator]();
    expect((await late.next()).value.event.case).toBe('started');
    const prompt = reading.terminals.watch({ terminal })[Symbol.asyncIterator]();
    expect((await prompt.next()).value.event.case).toBe('started');
    const before = residentBytes();

    const begin = performance.now();
    await reading.terminals.write({ terminal, data: Buffer.from('\n') });
    const whole = await read(prompt);
    const promptMs = performance.now() - begin;
    const grown = residentBytes() - before;
    const called = performance.now();
    await reading.terminals.getTerminal({ terminal });
    const callMs = performance.now() - called;
    process.stderr.write(
      `200 MB past a stopped watcher: the other one took ${promptMs.toFixed(0)} ms, a call ` +
        `${callMs.toFixed(1)} ms; the server's RSS grew by ${(grown / 2 ** 20).toFixed(0)} MiB\n`,
    );
    const expected = `\n${'0123456789abcde\n'.repeat(FLOOD_BYTES / 16)}`;
    expect(whole).toEqual({
      bytes: FLOOD_BYTES + 1,
      hash: createHash('sha256').update(expected).digest('hex'),
    });
    expect(grown).toBeLessThan(MOST_GROWTH_BYTES);
    expect(await read(late)).toEqual(whole);
  }, 120_000);
});
