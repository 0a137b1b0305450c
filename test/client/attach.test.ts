import type { AttachEvent, Attachment } from '../../src/client/attachment.js';
import { type Client, connect } from '../../src/client/connect.js';
import { INPUT_WINDOW_BYTES } from '../../src/client/inputWindow.js';
import type { Pacing } from '../../src/client/reconnection.js';
import { AttachFrameKind, ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { AttachmentKind, Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import type { AttachRequest } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import {
  type AttachCall,
  certificates,
  failure,
  fakeServer,
  responseOf,
  status,
  tokenOf,
} from './fakeServer.js';

const pacing: Pacing = { now: () => 0, random: () => 0, sleep: async () => {} };
const open = { terminal: { id: 't' }, kind: AttachmentKind.SERVICE };

/** A server whose every Attach call is handed to `serve`, with the frames that come in. */
async function attachServer(
  serve: (call: AttachCall, frames: AsyncIterator<AttachRequest>) => void,
) {
  return fakeServer({
    attach: (call) => serve(call, call.iterator({ destroyOnReturn: false })),
  });
}

function client(address: string, token: () => Promise<string> = async () => 'token-1'): Client {
  return connect({ address, ca: certificates.ca, token });
}

const started = (
  value: { attachmentId?: string; inputBytes?: bigint; attachmentResumed?: boolean } = {},
) =>
  responseOf({
    case: 'started',
    value: { nextSeq: 1n, attachmentId: 'a1', logEpoch: 1, ...value },
  });
const output = (seq: bigint) =>
  responseOf({ case: 'output', value: { seq, data: Buffer.from(`<${seq}>`) } });
const ack = (bytes: number) => responseOf({ case: 'inputAck', value: { bytes: BigInt(bytes) } });
const denied = (frameIndex: number) =>
  responseOf({
    case: 'denied',
    value: { frameIndex: BigInt(frameIndex), frame: AttachFrameKind.INPUT },
  });

/** Undefined when the client has half-closed or gone. */
async function frame(frames: AsyncIterator<AttachRequest>) {
  const next = await frames.next().catch(() => undefined);
  return next === undefined || next.done ? undefined : next.value.frame;
}

async function rest(attachment: Attachment): Promise<AttachEvent[]> {
  const events: AttachEvent[] = [];
  for await (const event of attachment.events) events.push(event);
  return events;
}

describe('attach', () => {
  it('opens first, then sends input, sizes and signals in their order, and ends input alone', async () => {
    const seen: unknown[] = [];
    await using server = await attachServer(async (call, frames) => {
      for (let got = await frame(frames); got; got = await frame(frames)) {
        seen.push([got.case, got.case === 'input' ? Buffer.from(got.value.data).toString() : '']);
        if (got.case === 'open') call.write(started());
      }
      // The client has half-closed and still gets this.
      call.write(output(1n));
      call.write(responseOf({ case: 'closing', value: { reason: ClosingReason.EXITED } }));
      call.end();
    });
    using grantty = client(server.address);
    const attachment = await grantty.attach(open);
    const reading = rest(attachment);
    await attachment.input(Buffer.from('ls\n'));
    await attachment.resize({ columns: 100, rows: 30 });
    await attachment.signal(Signal.INT);
    attachment.endInput();
    expect((await reading).map((event) => event.case)).toEqual(['started', 'output', 'closing']);
    expect(seen).toEqual([
      ['open', ''],
      ['input', 'ls\n'],
      ['resize', ''],
      ['signal', ''],
    ]);
  });

  it('fails to open where the server refuses', async () => {
    await using server = await attachServer((call) => {
      call.emit('error', failure({ code: status.PERMISSION_DENIED, reason: 'GRANT_MISSING' }));
    });
    using grantty = client(server.address);
    await expect(grantty.attach(open)).rejects.toMatchObject({ reason: 'GRANT_MISSING' });
  });

  it('goes on from the last seq that holds when a power cut took the end of the log, and says so', async () => {
    const told: string[] = [];
    let calls = 0;
    let breakCall = () => {};
    await using server = await attachServer(async (call, frames) => {
      calls += 1;
      const opened = await frame(frames);
      const start = opened?.case === 'open' ? opened.value.start : undefined;
      if (calls === 1) {
        for (const message of [started(), output(1n), output(2n)]) call.write(message);
        breakCall = () => call.emit('error', failure({ code: status.UNAVAILABLE }));
      } else if (start?.case === 'after' && start.value.afterSeq === 2n) {
        const metadata = { last_seq: '1', log_epoch: '2' };
        call.emit('error', failure({ code: status.ABORTED, reason: 'LOG_REWOUND', metadata }));
      } else {
        for (const message of [started(), output(2n)]) call.write(message);
        call.end();
      }
    });
    using grantty = client(server.address);
    const attachment = await grantty.attach(open, {
      pacing,
      onRewind: (seq) => told.push(`rewind ${seq}`),
    });
    for await (const event of attachment.events) {
      told.push(event.case === 'output' ? `output ${event.value.seq}` : event.case);
      if (told.length === 3) breakCall();
    }
    expect(told).toEqual([
      'started',
      'output 1',
      'output 2',
      'rewind 1',
      'reconnected',
      'output 2',
    ]);
  });

  it('cuts long input into frames of 64 KiB and keeps the order of concurrent calls', async () => {
    const sizes: number[] = [];
    const bytes: Buffer[] = [];
    await using server = await attachServer(async (call, frames) => {
      let taken = 0;
      for (let got = await frame(frames); got; got = await frame(frames)) {
        if (got.case === 'open') call.write(started());
        if (got.case !== 'input') continue;
        sizes.push(got.value.data.length);
        bytes.push(Buffer.from(got.value.data));
        taken += got.value.data.length;
        call.write(ack(taken));
      }
      call.end();
    });
    using grantty = client(server.address);
    const attachment = await grantty.attach(open);
    const reading = rest(attachment);
    const paste = Buffer.alloc(1_000_000, 'a');
    await Promise.all([attachment.input(paste), attachment.input(Buffer.from('b'))]);
    attachment.endInput();
    await reading;
    expect(Math.max(...sizes)).toBe(65_536);
    expect(Buffer.concat(bytes).equals(Buffer.concat([paste, Buffer.from('b')]))).toBe(true);
  });

  it('holds input back until the server has taken what is on its way', async () => {
    let received = 0;
    let take: (() => void) | undefined;
    const full = new Promise<void>((resolve) => {
      take = resolve;
    });
    await using server = await attachServer(async (call, frames) => {
      for (let got = await frame(frames); got; got = await frame(frames)) {
        if (got.case === 'open') call.write(started());
        if (got.case !== 'input') continue;
        received += got.value.data.length;
        if (received >= INPUT_WINDOW_BYTES) take?.();
        if (received > INPUT_WINDOW_BYTES) call.write(ack(received));
      }
      call.end();
    });
    using grantty = client(server.address);
    const attachment = await grantty.attach(open);
    const reading = rest(attachment);
    const sent = attachment.input(Buffer.alloc(2 * INPUT_WINDOW_BYTES));
    await full;
    let isSent = false;
    void sent.then(() => {
      isSent = true;
    });
    // Time for the rest: another stream's way there and back on the same connection.
    (await grantty.attach(open)).close();
    expect({ isSent, received }).toEqual({ isSent: false, received: INPUT_WINDOW_BYTES });
    attachment.close();
    await sent;
    await reading;
  });

  it('makes room for input that was refused', async () => {
    await using server = await attachServer(async (call, frames) => {
      let index = 0;
      for (let got = await frame(frames); got; got = await frame(frames)) {
        if (got.case === 'open') call.write(started());
        else call.write(denied(index));
        index += 1;
      }
      call.end();
    });
    using grantty = client(server.address);
    const attachment = await grantty.attach(open);
    const reading = rest(attachment);
    await attachment.input(Buffer.alloc(3 * INPUT_WINDOW_BYTES));
    attachment.endInput();
    const events = await reading;
    expect(events.filter((event) => event.case === 'denied')).toHaveLength(12);
  });

  it('resumes after a lost connection, and says how much input is in doubt', async () => {
    const opens: unknown[] = [];
    const inputs: string[] = [];
    await using server = await attachServer(async (call, frames) => {
      for (let got = await frame(frames); got; got = await frame(frames)) {
        if (got.case === 'input') {
          inputs.push(Buffer.from(got.value.data).toString());
          if (opens.length === 1) {
            call.emit('error', failure({ code: status.UNAVAILABLE }));
            return;
          }
          call.end();
        }
        if (got.case !== 'open') continue;
        const { attachmentId, start } = got.value;
        opens.push([attachmentId, start.case === 'after' ? start.value.afterSeq : undefined]);
        call.write(started(opens.length > 1 ? { inputBytes: 3n, attachmentResumed: true } : {}));
        call.write(output(BigInt(opens.length)));
      }
    });
    using grantty = client(server.address);
    const attachment = await grantty.attach(open, { pacing });
    const events: AttachEvent[] = [];
    for await (const event of attachment.events) {
      events.push(event);
      if (event.case === 'output' && event.value.seq === 1n) {
        await attachment.input(Buffer.from('hello'));
      }
      if (event.case === 'reconnected') await attachment.input(Buffer.from('again'));
    }
    expect(events.map((event) => event.case)).toEqual([
      'started',
      'output',
      'reconnected',
      'output',
    ]);
    expect(events[2]).toMatchObject({ value: { inputInDoubt: 2 } });
    expect(opens).toEqual([
      ['', undefined],
      ['a1', 1n],
    ]);
    // Never sent again by itself.
    expect(inputs).toEqual(['hello', 'again']);
  });

  it('holds input that is typed while the connection is lost, and keeps the last size', async () => {
    const sizes: unknown[] = [];
    let calls = 0;
    await using server = await attachServer(async (call, frames) => {
      calls += 1;
      const first = await frame(frames);
      if (first?.case === 'open') sizes.push(first.value.size?.columns);
      call.write(started());
      if (calls === 1) {
        call.emit('error', failure({ code: status.UNAVAILABLE }));
        return;
      }
      const got = await frame(frames);
      if (got?.case === 'input') call.write(output(BigInt(got.value.data.length)));
      call.end();
    });
    using grantty = client(server.address);
    let typed: Promise<void> | undefined;
    const attachment = await grantty.attach(open, {
      pacing: {
        ...pacing,
        sleep: async () => {
          await attachment.resize({ columns: 33, rows: 10 });
          typed ??= attachment.input(Buffer.from('12345'));
        },
      },
    });
    const events = await rest(attachment);
    await typed;
    expect(events.at(-1)).toMatchObject({ case: 'output', value: { seq: 5n } });
    expect(sizes).toEqual([undefined, 33]);
  });

  it('hands a renewed token over when the server warns of the end of the old one', async () => {
    let token = 'token-1';
    await using server = await attachServer(async (call, frames) => {
      await frame(frames);
      call.write(started());
      token = 'token-2';
      call.write(responseOf({ case: 'expiring', value: {} }));
      const got = await frame(frames);
      const given = got?.case === 'reauthenticate' ? got.value.token : '';
      call.write(responseOf({ case: 'output', value: { seq: 1n, data: Buffer.from(given) } }));
      call.end();
    });
    using grantty = client(server.address, async () => token);
    const events = await rest(await grantty.attach(open, { pacing }));
    expect(events.at(-1)).toMatchObject({ value: { data: Buffer.from('token-2') } });
  });

  it('opens again with a renewed token where input has ended and none can be handed over', async () => {
    let token = 'token-1';
    let expire: (() => void) | undefined;
    const frames: unknown[] = [];
    await using server = await attachServer(async (call, incoming) => {
      for (let got = await frame(incoming); got; got = await frame(incoming)) {
        frames.push(got.case);
        if (got.case === 'open') call.write(started());
      }
      if (tokenOf(call) === 'token-2') return void call.end();
      call.write(responseOf({ case: 'expiring', value: {} }));
      call.write(output(1n));
      expire = () =>
        call.emit('error', failure({ code: status.UNAUTHENTICATED, reason: 'TOKEN_EXPIRED' }));
    });
    using grantty = client(server.address, async () => token);
    const attachment = await grantty.attach(open, { pacing });
    attachment.endInput();
    const events: string[] = [];
    for await (const event of attachment.events) {
      events.push(event.case);
      if (event.case !== 'output') continue;
      token = 'token-2';
      expire?.();
    }
    expect(events).toEqual(['started', 'output', 'reconnected']);
    expect(frames).toEqual(['open', 'open']);
  });

  it('hands over the token after next as well', async () => {
    let token = 1;
    await using server = await attachServer(async (call, frames) => {
      await frame(frames);
      call.write(started());
      for (let round = 0n; round < 2n; round++) {
        token += 1;
        call.write(responseOf({ case: 'expiring', value: {} }));
        const got = await frame(frames);
        const given = got?.case === 'reauthenticate' ? got.value.token : '';
        call.write(
          responseOf({ case: 'output', value: { seq: round + 1n, data: Buffer.from(given) } }),
        );
      }
      call.end();
    });
    using grantty = client(server.address, async () => `token-${token}`);
    const events = await rest(await grantty.attach(open, { pacing }));
    const given = events.flatMap((event) =>
      event.case === 'output' ? [Buffer.from(event.value.data).toString()] : [],
    );
    expect(given).toEqual(['token-2', 'token-3']);
  });

  it('opens again with a renewed token after the old one has ended', async () => {
    let token = 'token-1';
    await using server = await attachServer(async (call, frames) => {
      await frame(frames);
      call.write(started());
      if (tokenOf(call) === 'token-2') return void call.end();
      token = 'token-2';
      call.emit('error', failure({ code: status.UNAUTHENTICATED, reason: 'TOKEN_EXPIRED' }));
    });
    using grantty = client(server.address, async () => token);
    const events = await rest(await grantty.attach(open, { pacing }));
    expect(events.map((event) => event.case)).toEqual(['started', 'reconnected']);
  });

  it('ends quietly when it is closed, and lets go of waiting input', async () => {
    await using server = await attachServer(async (call, frames) => {
      await frame(frames);
      call.write(started());
    });
    using grantty = client(server.address);
    const attachment = await grantty.attach(open);
    const typed = attachment.input(Buffer.alloc(2 * INPUT_WINDOW_BYTES));
    for await (const event of attachment.events) {
      expect(event.case).toBe('started');
      attachment.close();
    }
    await typed;
  });

  it('ends with the reason of the signal', async () => {
    await using server = await attachServer(async (call, frames) => {
      await frame(frames);
      call.write(started());
    });
    using grantty = client(server.address);
    const abort = new AbortController();
    const attachment = await grantty.attach(open, { signal: abort.signal });
    const reading = rest(attachment);
    abort.abort(new Error('enough'));
    await expect(reading).rejects.toThrow('enough');
  });
});
