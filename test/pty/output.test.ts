import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { readProcess } from '../../src/pty/processTable.js';
import { openPty } from '../../src/pty/pty.js';
import {
  eventually,
  meanwhile,
  openScript,
  openTerminal,
  testEnvironment,
} from './openTerminal.js';

/** `seq 1 50000`, each line end as the terminal prints it: 338,894 bytes. */
const NUMBERS = Buffer.from(
  Array.from({ length: 50_000 }, (_, index) => `${index + 1}\r\n`).join(''),
);
/** For a machine that is busy with other things. */
const LONG_MS = 120_000;
const COUNT = ['/usr/bin/seq', '1', '50000'];

function hashOf(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}

describe('output of a terminal', () => {
  it(
    'is complete and in order before exit resolves, in 200 runs of 300 KB',
    async () => {
      const expected = hashOf(NUMBERS);
      for (let run = 0; run < 200; run += 1) {
        const { pty, output } = openTerminal(COUNT);
        const exit = await pty.exit;
        expect({ run, exit, hash: hashOf(output()) }).toEqual({
          run,
          exit: { exitCode: 0, drained: true },
          hash: expected,
        });
        pty.close();
      }
    },
    LONG_MS,
  );

  it('is read once in a turn of the event loop: a flood holds nothing else up', async () => {
    let reads = 0;
    const env = testEnvironment;
    const pty = openPty(
      { command: ['/bin/cat', '/dev/zero'], env, cwd: '/', size: { cols: 80, rows: 24 } },
      () => {
        reads += 1;
      },
    );
    const readsInTurns: number[] = [];
    while (readsInTurns.length < 1000) {
      await new Promise((resolve) => setImmediate(resolve));
      if (reads > 0) readsInTurns.push(reads);
      reads = 0;
    }
    pty.close();
    await pty.exit;
    // The kernel may fill even a large buffer while it is copied to; then another read follows at once.
    const withMore = readsInTurns.filter((count) => count > 1);
    expect(withMore.length).toBeLessThan(readsInTurns.length / 20);
  });

  it('is complete when several terminals end at once', async () => {
    const terminals = Array.from({ length: 16 }, () => openTerminal(COUNT));
    await Promise.all(terminals.map(({ pty }) => pty.exit));
    for (const { output } of terminals) expect(hashOf(output())).toBe(hashOf(NUMBERS));
  });

  it('is complete when the reader is paused at the exit of the child', async () => {
    for (let run = 0; run < 20; run += 1) {
      const { pty, output } = openScript(
        'stty -opost; head -c 6000 /dev/zero | tr "\\0" x; echo end',
      );
      pty.pauseOutput();
      expect(await pty.exit).toEqual({ exitCode: 0, drained: true });
      expect(output().toString()).toBe(`${'x'.repeat(6000)}end\n`);
      pty.close();
    }
  });

  it('is complete when the reader was paused and resumed many times', async () => {
    const { pty, output } = openTerminal(COUNT);
    const timer = setInterval(() => {
      pty.pauseOutput();
      setTimeout(() => pty.resumeOutput(), 1);
    }, 2);
    await pty.exit;
    clearInterval(timer);
    expect(hashOf(output())).toBe(hashOf(NUMBERS));
  });

  it('is complete when every chunk pauses the reader for a moment', async () => {
    const hash = createHash('sha256');
    let turns = 0;
    const pty = openPty(
      { command: COUNT, env: {}, cwd: '/', size: { cols: 80, rows: 24 } },
      (chunk) => {
        hash.update(chunk);
        turns += 1;
        pty.pauseOutput();
        pty.resumeOutput();
        pty.pauseOutput();
        setImmediate(() => pty.resumeOutput());
      },
    );
    await pty.exit;
    pty.close();
    expect(turns).toBeGreaterThan(10);
    expect(hash.digest('hex')).toBe(hashOf(NUMBERS));
  });

  it('holds its writer back while it is paused', async () => {
    const { pty, output, seen } = openScript('echo ready; exec yes');
    await seen('ready');
    pty.pauseOutput();
    const before = output().length;
    // It does nothing but write.
    await eventually(() => readProcess(pty.pid)?.state === 'S');
    expect(output().length).toBe(before);
    pty.resumeOutput();
    await seen('y\r\n'.repeat(before));
  });

  it('is complete when a background process keeps the terminal open', async () => {
    for (let run = 0; run < 5; run += 1) {
      const { pty, output } = openScript(`trap "" HUP; sleep 60 & ${COUNT.join(' ')}`);
      expect(await pty.exit).toEqual({ exitCode: 0, drained: false });
      expect(hashOf(output())).toBe(hashOf(NUMBERS));
      pty.close();
    }
  });

  it('is complete when the reader is paused and a background process keeps the terminal open', async () => {
    const { pty, output } = openScript('trap "" HUP; sleep 60 & printf "%05000d" 7');
    pty.pauseOutput();
    expect(await pty.exit).toEqual({ exitCode: 0, drained: false });
    expect(output().toString()).toBe('7'.padStart(5000, '0'));
  });

  it('takes in what a background process prints within a short silence after the exit', async () => {
    const whole = '1\r\n2\r\n3\r\n';
    const run = async () => {
      const { pty, output } = openScript(
        'trap "" HUP; (for i in 1 2 3; do sleep 0.1; echo $i; done) &',
      );
      const { exitCode, drained } = await pty.exit;
      expect(exitCode).toBe(0);
      // On a busy machine the silence may last longer than it is meant to; then no more is taken in.
      expect(output().toString()).toBe(drained ? whole : whole.slice(0, output().length));
      return drained;
    };
    let drained = await run();
    for (let again = 0; !drained && again < 9; again += 1) drained = await run();
    expect(drained).toBe(true);
  });

  it('ends two seconds after the exit when a background process never stops printing', async () => {
    const { pty, output, seen } = openScript('echo first; trap "" HUP; yes & read line');
    await seen('y\r\n');
    await pty.send(Buffer.from('\n'), () => undefined);
    const begin = performance.now();
    expect(await pty.exit).toEqual({ exitCode: 0, drained: false });
    expect(performance.now() - begin).toBeGreaterThan(1_900);
    expect(performance.now() - begin).toBeLessThan(15_000);
    expect(output().subarray(0, 7).toString()).toBe('first\r\n');
    const atExit = output().length;
    await meanwhile();
    expect(output().length).toBe(atExit);
  });

  it('does not grow past the exit while a background process floods a paused reader', async () => {
    const { pty, output, seen } = openScript('echo ready; trap "" HUP; yes & sleep 0.1; exit 3');
    await seen('ready');
    pty.pauseOutput();
    const before = output().length;
    expect(await pty.exit).toEqual({ exitCode: 3, drained: false });
    expect(output().length - before).toBeLessThan(1024 * 1024);
  });

  it('arrives when the child prints five bytes and ends at once', async () => {
    for (let run = 0; run < 100; run += 1) {
      const { pty, output } = openTerminal(['/usr/bin/printf', 'hello']);
      expect(await pty.exit).toEqual({ exitCode: 0, drained: true });
      expect(output().toString()).toBe('hello');
      pty.close();
    }
  });

  it('is the same bytes, whatever they are', async () => {
    const bytes = '\\303\\050\\000\\377\\342\\202\\254\\360\\237\\230\\200\\033[31m';
    const { pty, output } = openScript(`stty -opost; printf '${bytes}'`);
    await pty.exit;
    expect([...output()]).toEqual([
      0xc3, 0x28, 0x00, 0xff, 0xe2, 0x82, 0xac, 0xf0, 0x9f, 0x98, 0x80, 0x1b, 0x5b, 0x33, 0x31,
      0x6d,
    ]);
  });

  it('is whole when a character is split over two reads', async () => {
    const { pty, output } = openScript("printf '\\360\\237'; sleep 0.05; printf '\\230\\200'");
    await pty.exit;
    expect(output().toString('utf8')).toBe('\u{1f600}');
  });

  it('goes on when no process has had the terminal open for a while', async () => {
    const { pty, output } = openScript(
      'echo before; exec <&- >&- 2>&-; sleep 0.2; echo after >/dev/tty',
    );
    expect(await pty.exit).toEqual({ exitCode: 0, drained: true });
    expect(output().toString()).toBe('before\r\nafter\r\n');
  });

  it('ends, complete, when a process hangs its terminal up itself', async () => {
    if (process.getuid?.() !== 0 || !existsSync('/usr/bin/python3')) {
      return console.warn('skipped: needs root and /usr/bin/python3');
    }
    const hangUp = 'import ctypes; ctypes.CDLL(None).vhangup()';
    const { pty, output } = openScript(
      `trap "" HUP; seq 1 2000; exec /usr/bin/python3 -c "${hangUp}"`,
    );
    expect(await pty.exit).toEqual({ exitCode: 0, drained: true });
    expect(output().toString()).toMatch(/\r\n2000\r\n$/);
    expect(output()).toEqual(NUMBERS.subarray(0, output().length));
  });
});
