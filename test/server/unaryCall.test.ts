import { connect } from 'node:http2';
import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { status as StatusCode } from '@grpc/grpc-js';
import type { Name } from '../../src/core/names.js';
import {
  GetTerminalRequestSchema,
  GetTerminalResponseSchema,
  WriteRequestSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { Harness } from './harness.js';

const GET = '/grantty.v1.TerminalService/GetTerminal';
const WRITE = '/grantty.v1.TerminalService/Write';
const ref = { owner: '1000', id: 'a' };
const request = toBinary(
  GetTerminalRequestSchema,
  create(GetTerminalRequestSchema, { terminal: ref }),
);
const write = toBinary(
  WriteRequestSchema,
  create(WriteRequestSchema, { terminal: ref, data: Buffer.from('x') }),
);

function framed(message: Uint8Array, { flag = 0, length = message.length } = {}): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag, 0);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

interface Answer {
  readonly status: StatusCode;
  readonly text: string;
  readonly body: Buffer;
}

interface Asked {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent one by one, each in its own frame. */
  readonly chunks: readonly Uint8Array[];
  /** The client says no more and does not end. */
  readonly open?: true;
  readonly token?: string;
}

describe('a unary call on HTTP/2', () => {
  let harness: Harness;
  let token: string;
  beforeAll(async () => {
    harness = await Harness.start();
    token = await harness.token();
    await harness.supervisor.add({ id: 'a' as Name });
  });
  afterAll(() => harness[Symbol.asyncDispose]());

  async function ask(asked: Asked): Promise<Answer> {
    const session = connect(`http://127.0.0.1:${harness.server.port}`);
    try {
      return await new Promise<Answer>((resolve, reject) => {
        const stream = session.request({
          ':method': 'POST',
          ':path': asked.path ?? GET,
          'content-type': 'application/grpc',
          te: 'trailers',
          authorization: `Bearer ${asked.token ?? token}`,
          ...asked.headers,
        });
        const body: Buffer[] = [];
        let told: Readonly<Record<string, unknown>> = {};
        const take = (headers: Readonly<Record<string, unknown>>) => {
          if (headers['grpc-status'] !== undefined) told = headers;
        };
        stream.on('response', take);
        stream.on('trailers', take);
        stream.on('data', (chunk: Buffer) => body.push(chunk));
        stream.on('end', () => {
          const { 'grpc-status': status, 'grpc-message': text = '' } = told;
          resolve({ status: Number(status), text: String(text), body: Buffer.concat(body) });
        });
        stream.on('error', reject);
        session.on('error', reject);
        const send = (index: number): void => {
          const chunk = asked.chunks[index];
          if (chunk === undefined) {
            if (!asked.open) stream.end();
            return;
          }
          stream.write(chunk, () => send(index + 1));
        };
        send(0);
      });
    } finally {
      session.destroy();
    }
  }

  const isTheTerminal = ({ status, body }: Answer): void => {
    expect(status).toBe(StatusCode.OK);
    expect(body.readUInt32BE(1)).toBe(body.length - 5);
    const { terminal } = fromBinary(GetTerminalResponseSchema, body.subarray(5));
    expect(terminal).toMatchObject({ ref, firstSeq: 1n, nextSeq: 1n, agent: 'coder' });
  };

  it('is answered, in however many pieces its message comes', async () => {
    const whole = framed(request);
    isTheTerminal(await ask({ chunks: [whole] }));
    isTheTerminal(await ask({ chunks: [...whole].map((byte) => Uint8Array.of(byte)) }));
  });

  it('may be compressed', async () => {
    const chunks = [framed(gzipSync(request), { flag: 1 })];
    isTheTerminal(await ask({ chunks, headers: { 'grpc-encoding': 'gzip' } }));
  });

  it.each([
    ['no message', [], StatusCode.UNIMPLEMENTED],
    ['half a prefix', [Buffer.alloc(3)], StatusCode.UNIMPLEMENTED],
    ['half a message', [framed(request).subarray(0, -1)], StatusCode.UNIMPLEMENTED],
    ['two messages', [framed(request), framed(request)], StatusCode.UNIMPLEMENTED],
    ['a compressed message and no word of it', [framed(request, { flag: 1 })], StatusCode.INTERNAL],
    ['no protobuf', [framed(Uint8Array.of(0xff))], StatusCode.INVALID_ARGUMENT],
  ] as const)('with %s is refused', async (_, chunks, status) => {
    expect(await ask({ chunks })).toMatchObject({ status, body: Buffer.alloc(0) });
  });

  it('is refused as soon as it says that it is too large', async () => {
    const chunks = [framed(new Uint8Array(10), { length: 512 * 1024 })];
    const answer = await ask({ chunks, open: true });
    expect(answer.status).toBe(StatusCode.RESOURCE_EXHAUSTED);
  });

  it('needs exactly one token', async () => {
    const { status } = await ask({ chunks: [framed(request)], token: 'x' });
    expect(status).toBe(StatusCode.UNAUTHENTICATED);
  });

  it('with a time-out that means nothing is refused', async () => {
    const headers = { 'grpc-timeout': '1x' };
    const { status } = await ask({ chunks: [framed(request)], headers });
    expect(status).toBe(StatusCode.INTERNAL);
  });

  it('ends when the time that the client gave it is over', async () => {
    const terminal = harness.supervisor.terminals.get('1000/a');
    if (terminal === undefined) throw new Error('the terminal is missing');
    let resolve = () => {};
    const promise = new Promise<void>((opened) => {
      resolve = opened;
    });
    terminal.inputGate = promise;
    const headers = { 'grpc-timeout': '50m' };
    const { status } = await ask({ path: WRITE, chunks: [framed(write)], headers });
    expect(status).toBe(StatusCode.DEADLINE_EXCEEDED);
    resolve();
    const late = await ask({
      path: WRITE,
      chunks: [framed(write)],
      headers: { 'grpc-timeout': '1H' },
    });
    expect(late.status).toBe(StatusCode.OK);
  });

  it('keeps its connection from being closed as idle', async () => {
    await using own = await Harness.start({ limits: { idleMs: 100 } });
    const terminal = await own.supervisor.add({ id: 'a' as Name });
    const held = new Promise<void>((resolve) => {
      setTimeout(resolve, 500);
    });
    terminal.inputGate = held;
    const session = connect(`http://127.0.0.1:${own.server.port}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': WRITE,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${await own.token()}`,
    });
    const status = new Promise((resolve, reject) => {
      stream.on('trailers', (headers) => resolve(headers['grpc-status']));
      stream.on('error', reject);
      session.on('goaway', () => reject(new Error('the connection was sent away')));
    });
    stream.end(framed(write));
    stream.resume();
    expect(await status).toBe('0');
    // Only then it is idle.
    await new Promise((resolve) => session.once('close', resolve));
  });
});
