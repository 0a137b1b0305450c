import { createHash } from 'node:crypto';
import type { Client } from '../../src/client/connect.js';
import { MAX_INPUT_FRAME_BYTES, MAX_INPUT_QUEUE_BYTES } from '../../src/core/limits.js';
import { AttachmentKind } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startService, type TestService } from '../support/service.js';
import { watchAll } from '../support/streams.js';

const sha256 = (...parts: readonly (Buffer | string)[]) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');

describe('input, over TLS', () => {
  let service: TestService;
  let client: Client;

  beforeAll(async () => {
    service = await startService();
    client = service.client();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  /** Resolves when the script has printed `ready`. */
  async function run(id: string, script: string) {
    const terminal = { id };
    await client.terminals.createTerminal({
      agent: 'coder',
      id,
      command: ['sh', '-c', script],
    });
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'ready' } });
    return terminal;
  }

  const attach = (terminal: { id: string }, by = client) =>
    by.attach({ kind: AttachmentKind.SERVICE, terminal });

  it('reaches a raw-mode reader whole, in order, one attachment’s paste of 64 KiB never within the other’s (case 10)', async () => {
    const pastes = ['a', 'b', 'c', 'd'].map((letter) =>
      Buffer.alloc(MAX_INPUT_FRAME_BYTES, letter),
    );
    const [a, b, c, d] = pastes as [Buffer, Buffer, Buffer, Buffer];
    const total = pastes.length * MAX_INPUT_FRAME_BYTES;
    const terminal = await run(
      'raw',
      `stty raw -echo; echo ready; head -c ${total} | tee ${service.stateDir}/raw | tr -s a-d; sha256sum ${service.stateDir}/raw`,
    );
    await using one = await attach(terminal);
    await using other = await attach(terminal, service.client());
    await Promise.all([one.input(a), other.input(b), one.input(c), other.input(d)]);

    const printed = (await watchAll(client, { terminal })).output.toString();
    const order = /ready\n([a-d]+)/.exec(printed)?.[1] ?? '';
    expect([...order].sort().join('')).toBe('abcd');
    expect(order.indexOf('a')).toBeLessThan(order.indexOf('c'));
    expect(order.indexOf('b')).toBeLessThan(order.indexOf('d'));
    const arrived = [...order].map((letter) => pastes['abcd'.indexOf(letter)] as Buffer);
    expect(printed).toContain(sha256(...arrived));
  });

  it('reaches a canonical reader whole, in order, in lines below 4,095 bytes (case 10)', async () => {
    const lines = Array.from({ length: 64 }, (_, n) => `${String(n).padStart(4_000, '.')}\n`);
    const terminal = await run('canonical', 'stty -echo; echo ready; sha256sum');
    await using attachment = await attach(terminal);
    await attachment.input(Buffer.from(lines.join('')));
    await attachment.input(Buffer.of(4));
    const { output } = await watchAll(client, { terminal });
    expect(output.toString()).toContain(sha256(lines.join('')));
  });

  it('is bounded for a program that reads nothing; the rest is refused, and other terminals are left alone (case 11)', async () => {
    const deaf = await run('deaf', 'stty raw -echo; echo ready; exec sleep 1000');
    const other = await run('other', 'stty -echo; echo ready; exec cat');
    const data = Buffer.alloc(MAX_INPUT_FRAME_BYTES, 'x');
    // One more than fit into the queue and the line discipline together.
    const frames = MAX_INPUT_QUEUE_BYTES / MAX_INPUT_FRAME_BYTES + 2;
    const writes = Array.from({ length: frames }, () =>
      client.terminals.write({ terminal: deaf, data }),
    );
    await expect(Promise.race(writes)).rejects.toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      reason: 'INPUT_QUEUE_FULL',
    });

    const { lastSeq } = await client.terminals.write({
      terminal: other,
      data: Buffer.from('are you there?\n'),
    });
    await client.terminals.wait(
      {
        terminal: other,
        condition: { case: 'pattern', value: 'are you there' },
        afterSeq: lastSeq,
      },
      { timeoutMs: 5_000 },
    );

    await client.terminals.kill({ terminal: deaf });
    const refusals = (await Promise.allSettled(writes)).map((write) =>
      write.status === 'rejected' ? String(write.reason.reason) : 'taken',
    );
    expect([...new Set(refusals)].sort()).toEqual(['INPUT_QUEUE_FULL', 'TERMINAL_EXITED']);
    expect(refusals.filter((reason) => reason === 'TERMINAL_EXITED').length).toBeGreaterThan(10);
    await client.terminals.kill({ terminal: other });
  });
});
