import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { GranttyError } from '../../src/core/errors.js';
import { MAX_INPUT_FRAME_BYTES } from '../../src/core/limits.js';
import { openScript } from './openTerminal.js';

const allow = () => undefined;

describe('input of a terminal', () => {
  it('reaches a raw-mode reader whole, in order and not interleaved, 64 KiB a paste', async () => {
    const pastes = ['a', 'b', 'c', 'd'].map((letter) =>
      Buffer.alloc(MAX_INPUT_FRAME_BYTES, letter),
    );
    const total = pastes.length * MAX_INPUT_FRAME_BYTES;
    const { pty, output, seen } = openScript(
      `stty raw -echo; echo ready; head -c ${total} | sha256sum`,
    );
    await seen('ready');
    await Promise.all(pastes.map((paste) => pty.send(paste, allow)));
    expect((await pty.exit).exitCode).toBe(0);
    const expected = createHash('sha256').update(Buffer.concat(pastes)).digest('hex');
    expect(output().toString()).toContain(expected);
  });

  it('reaches a canonical reader whole in lines below 4,095 bytes', async () => {
    const line = `${'x'.repeat(4_000)}\n`;
    const { pty, output, seen } = openScript('stty -echo; echo ready; sha256sum');
    await seen('ready');
    const frame = Buffer.from(line.repeat(16));
    await Promise.all([pty.send(frame, allow), pty.send(frame, allow)]);
    await pty.send(Buffer.of(4), allow);
    await pty.exit;
    const expected = createHash('sha256').update(line.repeat(32)).digest('hex');
    expect(output().toString()).toContain(expected);
  });

  it('is bounded for a program that reads nothing, which leaves other terminals alone', async () => {
    const deaf = openScript('stty raw -echo; echo ready; exec sleep 60');
    const other = openScript('stty -echo; echo ready; exec cat');
    await Promise.all([deaf.seen('ready'), other.seen('ready')]);
    const sent: Promise<void>[] = [];
    let full: unknown;
    /** Of the deaf one's queue at the kernel: leave is asked for before each. */
    let attempts = 0;
    const counted = () => {
      attempts += 1;
      return undefined;
    };
    while (full === undefined && sent.length < 100) {
      const frame = deaf.pty.send(Buffer.alloc(MAX_INPUT_FRAME_BYTES), counted);
      frame.catch((error: unknown) => {
        full = error;
      });
      sent.push(frame);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(full).toMatchObject({ reason: 'INPUT_QUEUE_FULL' });
    const begin = performance.now();
    attempts = 0;
    for (let question = 0; question < 20 || attempts < 5; question += 1) {
      await other.pty.send(Buffer.from(`are you there? ${question}\n`), allow);
      await other.seen(`are you there? ${question}\r\n`);
    }
    // 200 a second at the most, and ever fewer.
    expect(attempts).toBeLessThan(2 + (performance.now() - begin) / 5);
    deaf.pty.close();
    const ends = await Promise.allSettled(sent.slice(0, -1));
    for (const end of ends) {
      expect(end).toMatchObject({ status: 'rejected', reason: { reason: 'TERMINAL_EXITED' } });
    }
  });

  it('ends where leave is refused, and says how much went in', async () => {
    const { pty, seen } = openScript(
      'stty raw -echo; trap "head -c 100000 | wc -c; exit" USR1; sleep 60 & echo ready; while :; do wait; done',
    );
    await seen('ready');
    const revoked = new GranttyError('GRANT_REVOKED', 'revoked');
    let refusal: GranttyError | undefined;
    let taken = 0;
    const frame = pty.send(
      Buffer.alloc(MAX_INPUT_FRAME_BYTES, 'a'),
      () => refusal,
      (count) => {
        taken += count;
      },
    );
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(MAX_INPUT_FRAME_BYTES);
    refusal = revoked;
    await expect(frame).rejects.toBe(revoked);
    const before = taken;
    process.kill(pty.pid, 'SIGUSR1');
    await pty.send(Buffer.alloc(100_000 - before, 'b'), allow);
    await seen('100000');
    expect(taken).toBe(before);
  });

  it('makes signals of control bytes in the foreground only', async () => {
    const { pty, seen } = openScript('trap "echo interrupted; exit 7" INT; echo ready; read line');
    await seen('ready');
    await pty.send(Buffer.of(3), allow);
    await seen('interrupted');
    expect((await pty.exit).exitCode).toBe(7);
  });

  it('reaches a program as the bytes that were sent', async () => {
    const { pty, output, seen } = openScript('stty raw -echo; echo ready; head -c 5 | od -An -tx1');
    await seen('ready');
    await pty.send(Buffer.of(0, 0xff, 0xc3, 0x28, 0x0d), allow);
    await pty.exit;
    expect(output().toString()).toContain('00 ff c3 28 0d');
  });
});
