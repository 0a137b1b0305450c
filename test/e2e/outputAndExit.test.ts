import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Client } from '../../src/client/connect.js';
import { AttachmentKind, Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startService, type TestService } from '../support/service.js';
import { seqsTo, watchAll } from '../support/streams.js';

describe('output and exit, over TLS', () => {
  let service: TestService;
  let client: Client;

  beforeAll(async () => {
    service = await startService();
    client = service.client();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  async function create(id: string, ...command: string[]) {
    const { terminal } = await client.terminals.createTerminal({ agent: 'coder', id, command });
    return { id: terminal?.ref?.id ?? '', owner: terminal?.ref?.owner ?? '' };
  }

  const expected = Array.from({ length: 100_000 }, (_, i) => `${i + 1}\r\n`).join('');

  it('gives every byte, in order, before the exit, in each of 200 runs (case 1)', async () => {
    let runs = 0;
    const one = async (run: number) => {
      // Half of the watchers come while it runs, half when it may be over: cases 1 and 3.
      const command = run % 2 === 0 ? 'seq 1 100000' : 'head -c 300000 /dev/zero';
      const ref = await create(`flood-${run}`, 'sh', '-c', `${command}; exit 7`);
      const seen = await watchAll(client, { terminal: ref });
      const right =
        run % 2 === 0 ? seen.output.toString() === expected : seen.output.length === 300_000;
      expect(right).toBe(true);
      expect(seen.seqs).toEqual(seqsTo(seen.seqs.length));
      expect(seen.kinds.slice(-2)).toEqual(['exited', 'closing']);
      expect(seen.exitCode).toBe(7);
      await client.terminals.deleteTerminal({ terminal: ref });
      runs += 1;
    };
    for (let run = 0; run < 200; run += 8) {
      await Promise.all(Array.from({ length: 8 }, (_, i) => one(run + i)));
    }
    expect(runs).toBe(200);
  }, 120_000);

  it('gives a later watcher all bytes of a child that wrote five and exited at once (case 2)', async () => {
    const ref = await create('brief', 'printf', 'five!');
    await client.terminals.wait({ terminal: ref, condition: { case: 'exit', value: true } });
    const seen = await watchAll(client, { terminal: ref });
    expect(seen.output.toString()).toBe('five!');
    expect(seen.kinds).toEqual(['started', 'resized', 'output', 'exited', 'closing']);
  });

  it('gives the full content and exit code of a program that ended before the watcher came (case 3)', async () => {
    const ref = await create('cat', 'cat', '/proc/version');
    await client.terminals.wait({ terminal: ref, condition: { case: 'exit', value: true } });
    const seen = await watchAll(client, { terminal: ref });
    expect(seen.output.toString()).toBe(
      readFileSync('/proc/version', 'utf8').replace('\n', '\r\n'),
    );
    expect(seen.exitCode).toBe(0);
  });

  it('gives an attachment pending output, then exit code 3, then OK (case 4)', async () => {
    const ref = await create('pending', 'sh', '-c', 'read go; seq 1 20000; exit 3');
    const attachment = await client.attach({ kind: AttachmentKind.SERVICE, terminal: ref });
    await attachment.input(Buffer.from('\n'));
    const kinds: string[] = [];
    let text = '';
    let exitCode: number | undefined;
    for await (const event of attachment.events) {
      if (kinds.at(-1) !== event.case) kinds.push(event.case);
      if (event.case === 'output') text += Buffer.from(event.value.data).toString('latin1');
      if (event.case === 'exited') exitCode = event.value.status?.exitCode;
    }
    expect(text.endsWith('20000\r\n')).toBe(true);
    expect(exitCode).toBe(3);
    expect(kinds.slice(-3)).toEqual(['output', 'exited', 'closing']);
  });

  it('shows an exit code of 0 as present (case 5)', async () => {
    const ref = await create('zero', 'true');
    const waited = await client.terminals.wait({
      terminal: ref,
      condition: { case: 'exit', value: true },
    });
    expect(waited.exitStatus?.exitCode).toBe(0);
    const { terminal } = await client.terminals.getTerminal({ terminal: ref });
    expect(terminal?.exitStatus?.exitCode).toBe(0);
  });

  it('wakes a reader that waits when the process exits without any output (case 6)', async () => {
    const ref = await create('silent', 'sh', '-c', 'read go');
    const stream = client.watch({ terminal: ref })[Symbol.asyncIterator]();
    expect((await stream.next()).value.case).toBe('started');
    const next = stream.next();
    await client.terminals.stop({ terminal: ref });
    let event = (await next).value;
    while (event.case !== 'exited') event = (await stream.next()).value;
    expect(event.value.status?.signal).toBe('SIGTERM');
    await stream.return?.();
  });

  it('passes the bytes of a character on as they are when two writes split it (case 7)', async () => {
    const ref = await create(
      'split',
      'sh',
      '-c',
      "printf '\\360\\237'; read go; printf '\\230\\200'",
    );
    const attachment = await client.attach({ kind: AttachmentKind.SERVICE, terminal: ref });
    const chunks: Buffer[] = [];
    for await (const event of attachment.events) {
      if (event.case !== 'output') continue;
      chunks.push(Buffer.from(event.value.data));
      if (chunks.length === 1) await attachment.input(Buffer.from('\n'));
    }
    expect(chunks[0]).toEqual(Buffer.from([0xf0, 0x9f]));
    expect(Buffer.concat(chunks)).toEqual(Buffer.from('f09f0d0a9880', 'hex'));
  });

  it('leaves no master open after 500 short terminals, and no child holds a descriptor of ours (case 8)', async () => {
    const ours = () =>
      readdirSync('/proc/self/fd').flatMap((fd) => {
        try {
          return [readlinkSync(`/proc/self/fd/${fd}`)];
        } catch {
          return [];
        }
      });
    const masters = () => ours().filter((target) => target.startsWith('/dev/ptmx')).length;
    const before = masters();
    const one = async (id: string) => {
      const ref = await create(id, 'sh', '-c', 'readlink /proc/self/fd/* | sort -u');
      const seen = await watchAll(client, { terminal: ref });
      // Its own terminal, the pipe of the pipeline, and /proc/self/fd that `readlink` looked at.
      for (const target of seen.output.toString().trim().split('\r\n')) {
        expect(target).toMatch(/^(\/dev\/pts\/\d+|pipe:\[\d+\]|\/proc\/\d+\/fd.*)$/);
      }
      await client.terminals.deleteTerminal({ terminal: ref });
    };
    for (let batch = 0; batch < 50; batch += 1) {
      await Promise.all(Array.from({ length: 10 }, (_, i) => one(`short-${batch}-${i}`)));
    }
    expect(masters()).toBe(before);
  }, 120_000);

  it('refuses write, resize and signal after the exit with FAILED_PRECONDITION, and lives (case 9)', async () => {
    const ref = await create('over', 'true');
    await client.terminals.wait({ terminal: ref, condition: { case: 'exit', value: true } });
    const refused = { code: 'FAILED_PRECONDITION', reason: 'TERMINAL_EXITED' };
    const { terminals } = client;
    await expect(terminals.write({ terminal: ref, data: Buffer.from('x') })).rejects.toMatchObject(
      refused,
    );
    await expect(
      terminals.resize({ terminal: ref, size: { columns: 9, rows: 9 } }),
    ).rejects.toMatchObject(refused);
    await expect(terminals.signal({ terminal: ref, signal: Signal.INT })).rejects.toMatchObject(
      refused,
    );
    await expect(terminals.getTerminal({ terminal: ref })).resolves.toBeDefined();
  });
});
