import { type ChildProcess, spawn } from 'node:child_process';
import { createCipheriv, createHash } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createInterface } from 'node:readline';
import { startService, type TestService } from '../support/service.js';

const TERMINALS = 50;
const FLOOD_BYTES = 8 * 1024 * 1024;
const SEED = 'grantty flood 01';

/** Bytes that follow from the seed: AES in counter mode over zeros. */
function seededBytes(length: number): Buffer {
  const cipher = createCipheriv('aes-128-ctr', Buffer.from(SEED), Buffer.alloc(16));
  return cipher.update(Buffer.alloc(length));
}

describe('50 floods of 8 MiB with 50 watchers in another process', () => {
  let service: TestService;
  let watchers: ChildProcess;

  beforeAll(async () => {
    // Before any PTY is open: a child process would inherit its master.
    watchers = spawn(process.execPath, [join(import.meta.dirname, 'floodWatchers.mjs')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    service = await startService();
  });

  afterAll(async () => {
    watchers.kill();
    await service[Symbol.asyncDispose]();
  });

  it('arrive whole, by hash, while the event loop stays responsive', async () => {
    const client = service.client();
    const source = seededBytes(FLOOD_BYTES + TERMINALS * 4096);
    const file = join(service.stateDir, 'seeded');
    await writeFile(file, source);
    const expected: unknown[] = [];
    const ids: string[] = [];
    for (let i = 0; i < TERMINALS; i += 1) {
      const id = `flood-${i}`;
      const from = i * 4096;
      const script = `read go; stty -opost; tail -c +${from + 1} ${file} | head -c ${FLOOD_BYTES}`;
      await client.terminals.createTerminal({ agent: 'coder', id, command: ['sh', '-c', script] });
      // The echo of the newline that starts it comes first.
      const flood = Buffer.concat([Buffer.from('\r\n'), source.subarray(from, from + FLOOD_BYTES)]);
      ids.push(id);
      expected.push({
        id,
        bytes: flood.length,
        hash: createHash('sha256').update(flood).digest('hex'),
      });
    }
    const input = { address: service.address, ca: service.ca, token: await service.token(), ids };
    watchers.stdin?.write(`${JSON.stringify(input)}\n`);
    if (!watchers.stdout) throw new Error('the watchers have no output');
    const lines = createInterface({ input: watchers.stdout });
    await once(lines, 'line');
    const delay = monitorEventLoopDelay({ resolution: 1 });
    const rssBefore = process.memoryUsage.rss();
    delay.enable();
    const begin = performance.now();
    for (const id of ids) {
      await client.terminals.write({ terminal: { id }, data: Buffer.from('\n') });
    }
    const [line] = await once(lines, 'line');
    const seconds = (performance.now() - begin) / 1000;
    delay.disable();
    const rss = process.memoryUsage.rss();
    const ms = (nanoseconds: number) => (nanoseconds / 1e6).toFixed(1);
    process.stderr.write(
      `${TERMINALS} floods of 8 MiB: ${((TERMINALS * FLOOD_BYTES) / 1e6 / seconds).toFixed(0)} MB/s; ` +
        `event-loop delay p50 ${ms(delay.percentile(50))} p99 ${ms(delay.percentile(99))} ` +
        `max ${ms(delay.max)} ms; RSS ${(rssBefore / 2 ** 20).toFixed(0)} -> ${(rss / 2 ** 20).toFixed(0)} MiB\n`,
    );
    expect(JSON.parse(line).watched).toEqual(expected);
  }, 120_000);
});
