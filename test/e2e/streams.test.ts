import type { AttachEvent, Attachment } from '../../src/client/attachment.js';
import type { Client } from '../../src/client/connect.js';
import { AttachmentKind } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startService, type TestService } from '../support/service.js';
import { seqsTo, watchAll } from '../support/streams.js';

/** Everything an attachment was sent so far, and a way to wait for more. */
class Reader {
  readonly events: AttachEvent[] = [];
  #text = '';
  #wake = () => {};

  constructor(attachment: Attachment) {
    void this.#read(attachment);
  }

  async until(text: string): Promise<void> {
    while (!this.#text.includes(text)) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async untilEvent(kind: AttachEvent['case']): Promise<AttachEvent> {
    for (;;) {
      const found = this.events.find((event) => event.case === kind);
      if (found) return found;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #read(attachment: Attachment): Promise<void> {
    for await (const event of attachment.events) {
      this.events.push(event);
      if (event.case === 'output') this.#text += Buffer.from(event.value.data).toString('latin1');
      this.#wake();
    }
  }
}

describe('streams, over TLS', () => {
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

  it('interrupts the foreground program on Ctrl-C by a holder of write and signal; the shell lives (case 12)', async () => {
    const ref = await create('ctrl-c', 'bash', '--norc', '-i');
    const typist = service.client({
      actions: ['terminal.read', 'terminal.write', 'terminal.signal'],
    });
    await using attachment = await typist.attach({ kind: AttachmentKind.SERVICE, terminal: ref });
    const reader = new Reader(attachment);
    await attachment.input(Buffer.from('sh -c \'echo be""gun; exec sleep 1000\'\n'));
    await reader.until('begun');
    await attachment.input(Buffer.from([3]));
    await attachment.input(Buffer.from('echo al""ive\n'));
    await reader.until('alive');
    await client.terminals.kill({ terminal: ref });
  });

  it('refuses Ctrl-C whole to a holder of write alone, and the stream goes on', async () => {
    const ref = await create('no-ctrl-c', 'bash', '--norc', '-i');
    const typist = service.client({ actions: ['terminal.read', 'terminal.write'] });
    await using attachment = await typist.attach({ kind: AttachmentKind.SERVICE, terminal: ref });
    const reader = new Reader(attachment);
    await attachment.input(Buffer.from('echo dropped\x03\n'));
    const denied = await reader.untilEvent('denied');
    expect(denied.value).toMatchObject({ frameIndex: 1n, requiredAction: 'terminal.signal' });
    await attachment.input(Buffer.from('echo go""es on\n'));
    await reader.until('goes on');
    const printed = reader.events.flatMap((event) =>
      event.case === 'output' ? [Buffer.from(event.value.data).toString()] : [],
    );
    expect(printed.join('')).not.toContain('dropped');
    await client.terminals.kill({ terminal: ref });
  });

  it('meets history and live output without gap or duplicate, attached in the middle of a flood, 100 times (case 15)', async () => {
    // As quick as this machine starts a program: so who reads all of it a hundred times keeps up.
    const flood = 'while :; do yes 0123456789abcdef | head -c 16384; done';
    const ref = await create('flood', 'sh', '-c', `${flood} & read line; kill $!; wait`);
    let batches = 0;
    const joins: ReturnType<typeof watchAll>[] = [];
    const first = client.watch({ terminal: ref })[Symbol.asyncIterator]();
    while (joins.length < 100) {
      const { value } = await first.next();
      if (value?.case !== 'output') continue;
      batches += 1;
      joins.push(watchAll(client, { terminal: ref }));
    }
    await first.return?.();
    expect(batches).toBe(100);
    await client.terminals.write({ terminal: ref, data: Buffer.from('\n') });
    const seen = await Promise.all(joins);
    const whole = await watchAll(client, { terminal: ref });
    expect(whole.seqs).toEqual(seqsTo(whole.seqs.length));
    for (const one of seen) {
      expect(one.seqs.length).toBe(whole.seqs.length);
      expect(one.output.equals(whole.output)).toBe(true);
    }
  }, 60_000);

  it('answers CANCELLED to a cancelled watch and DEADLINE_EXCEEDED to one whose deadline passed (case 16)', async () => {
    const ref = await create('waiting', 'sleep', '1000');
    const stop = new AbortController();
    const cancelled = (async () => {
      for await (const { event } of client.terminals.watch(
        { terminal: ref },
        { signal: stop.signal },
      )) {
        if (event.case === 'started') stop.abort(new Error('enough'));
      }
    })();
    await expect(cancelled).rejects.toThrow('enough');
    const late = (async () => {
      for await (const _ of client.terminals.watch({ terminal: ref }, { timeoutMs: 200 }));
    })();
    await expect(late).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await expect(
      client.terminals.wait(
        { terminal: ref, condition: { case: 'exit', value: true } },
        { timeoutMs: 200 },
      ),
    ).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    await client.terminals.kill({ terminal: ref });
  });

  it('answers at once when the terminal does not exist: NOT_FOUND to who would see it, else PERMISSION_DENIED (case 19)', async () => {
    const nothing = { terminal: { id: 'never-made' } };
    await expect(watchAll(client, nothing)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      reason: 'TERMINAL_NOT_FOUND',
    });
    const narrow = service.client({ resource: { agent: 'coder' } });
    await expect(watchAll(narrow, nothing)).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
      reason: 'GRANT_MISSING',
    });
  });

  it('leaves the size alone when a read-only viewer with a small window joins (case 21)', async () => {
    const ref = await create('sized', 'sh', '-c', 'stty size; read go; stty size');
    const viewer = service.client({ actions: ['terminal.read'] });
    await using attachment = await viewer.attach({
      kind: AttachmentKind.SERVICE,
      terminal: ref,
      size: { columns: 20, rows: 5 },
    });
    const reader = new Reader(attachment);
    const denied = await reader.untilEvent('denied');
    expect(denied.value).toMatchObject({ frameIndex: 0n, requiredAction: 'terminal.resize' });
    await reader.until('24 80');
    await client.terminals.write({ terminal: ref, data: Buffer.from('\n') });
    const { output } = await watchAll(client, { terminal: ref });
    expect(output.toString()).toBe('24 80\r\n\r\n24 80\r\n');
  });

  it('sends SIGWINCH once, at the new size, when somebody reattaches at another size (case 22)', async () => {
    // Node.js tells of each SIGWINCH; a shell that waits may miss its trap. What it says of the size
    // is refreshed by a listener that comes with its standard output.
    const program = `
      const out = process.stdout;
      process.on('SIGWINCH', () => out.write(\`winch \${out.columns} \${out.rows}\\n\`));
      setInterval(() => {}, 1e6);
      out.write('ready\\n');`;
    const ref = await create('winch', process.execPath, '-e', program);
    const attach = async (columns: number, rows: number) => {
      const open = { terminal: ref, kind: AttachmentKind.HUMAN, size: { columns, rows } };
      const attachment = await client.attach(open);
      return { attachment, reader: new Reader(attachment) };
    };
    const first = await attach(80, 24);
    await first.reader.until('ready');
    first.attachment.close();
    const second = await attach(120, 40);
    await second.reader.until('winch 120 40');
    second.attachment.close();
    // Whatever the first change of size sent has come before what the next one sends.
    const third = await attach(121, 41);
    await third.reader.until('winch 121 41');
    await client.terminals.kill({ terminal: ref });
    const { output } = await watchAll(client, { terminal: ref });
    expect(output.toString()).toBe('ready\r\nwinch 120 40\r\nwinch 121 41\r\n');
  });

  it('keeps the terminal when every attachment goes (case 25, without the hours)', async () => {
    const ref = await create('kept', 'cat');
    const attachment = await client.attach({ kind: AttachmentKind.SERVICE, terminal: ref });
    const reader = new Reader(attachment);
    await attachment.input(Buffer.from('before\n'));
    await reader.until('before\r\nbefore');
    attachment.close();
    await using again = await client.attach({ kind: AttachmentKind.SERVICE, terminal: ref });
    const second = new Reader(again);
    await second.until('before\r\nbefore');
    await again.input(Buffer.from('after\n'));
    await second.until('after\r\nafter');
    await client.terminals.kill({ terminal: ref });
  });
});
