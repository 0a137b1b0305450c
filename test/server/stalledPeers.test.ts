/** Peers that begin and do not go on: what each may hold, for how long, and that others never notice. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { createConnection } from 'node:net';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { AttachmentKind } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startService, type TestService } from '../support/service.js';
import {
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  headerBlock,
  message,
  RawHttp2,
  SETTINGS,
  uint32,
  WINDOW_UPDATE,
} from './rawHttp2.js';

const GET = '/grantty.v1.TerminalService/GetTerminal';
const ATTACH = '/grantty.v1.TerminalService/Attach';
const HEALTH = '/grpc.health.v1.Health/Watch';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';

const limits = { firstCallMs: 2_000, requestMs: 1_000 };
/** For peers that are to be found out; others may be too slow for it on a busy machine. */
const impatience = { firstCallMs: 60_000, keepaliveMs: 300, keepaliveTimeoutMs: 300 };
async function tlsTo({ server, ca }: TestService, options = {}): Promise<TLSSocket> {
  const host = '127.0.0.1';
  const socket = connectTls({ host, port: server.port, ca, ALPNProtocols: ['h2'], ...options });
  await once(socket, 'secureConnect');
  return socket;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

const terminal = { id: 't1' };

describe('a server with peers that stall', () => {
  let service: TestService;
  let bystander: ReturnType<TestService['client']>;
  beforeAll(async () => {
    service = await startService({ limits });
    bystander = service.client();
    await bystander.terminals.createTerminal({ agent: 'a', ...terminal, command: ['cat'] });
  });
  afterAll(() => service[Symbol.asyncDispose]());
  // Whatever was done to the server, others are answered.
  afterEach(async () => {
    await bystander.terminals.getTerminal({ terminal });
  });

  const port = () => service.server.port;
  const tls = (options = {}) => tlsTo(service, options);
  const peer = async (settings?: Buffer) => RawHttp2.open(await tls(), settings);
  const bearer = async () => [['authorization', `Bearer ${await service.token()}`] as const];
  /** Resolves when nobody but the bystander is connected. */
  const untilAlone = () => until(() => service.server.load.connections === 1);

  it('drops who connects and says nothing, or too little to get to a call in time', async () => {
    const began = performance.now();
    const silent = createConnection({ host: '127.0.0.1', port: port() });
    silent.resume();
    // A handshake of TLS that would take half an hour: one byte, now and then.
    const slow = createConnection({ host: '127.0.0.1', port: port() });
    slow.resume();
    const hello = Buffer.from('1603010200010001', 'hex');
    let sent = 0;
    const drip = setInterval(() => {
      if (!slow.destroyed) slow.write(hello.subarray(sent % 8, (sent % 8) + 1));
      sent += 1;
    }, 100);
    slow.on('error', () => {});
    const quiet = await tls();
    quiet.resume();
    await Promise.all(
      [silent, slow, quiet].map((socket) => {
        // It may be cut off in the middle of what it says.
        socket.on('error', () => {});
        return new Promise((resolve) => socket.once('close', resolve));
      }),
    );
    clearInterval(drip);
    expect(sent).toBeGreaterThan(1);
    expect(performance.now() - began).toBeLessThan(limits.firstCallMs * 10);
    await untilAlone();
  });

  it('resets a request that does not get whole, whether it lies about its length or says nothing', async () => {
    await using raw = await peer();
    raw.send(
      frame(HEADERS, END_HEADERS, 1, headerBlock(GET)),
      frame(HEADERS, END_HEADERS, 3, headerBlock(GET)),
      frame(DATA, 0, 3, message(Buffer.from('less'), 0, 200_000)),
    );
    expect(await raw.reset(1)).toBe('ENHANCE_YOUR_CALM');
    expect(await raw.reset(3)).toBe('ENHANCE_YOUR_CALM');
  });

  it('resets a stream that was answered and is not closed by its client', async () => {
    await using raw = await peer();
    raw.send(frame(HEADERS, END_HEADERS, 1, headerBlock(ATTACH)));
    // No token: answered at once, by headers that end the server’s side.
    await raw.until(({ type, stream }) => type === HEADERS && stream === 1);
    expect(await raw.reset(1)).toBe('NO_ERROR');
  });

  it('leaves an attachment alone that has nothing to send', async () => {
    const attachment = await bystander.attach({ terminal, kind: AttachmentKind.SERVICE });
    const events = attachment.events[Symbol.asyncIterator]();
    await events.next();
    await using raw = await peer();
    raw.send(frame(HEADERS, END_HEADERS, 1, headerBlock(GET)));
    // By now a sweep has gone over both.
    await raw.reset(1);
    await attachment.input(Buffer.from('still here\n'));
    let text = '';
    while (!text.includes('still here')) {
      const { value } = await events.next();
      expect(value?.case).not.toBe('reconnected');
      if (value?.case === 'output') text += Buffer.from(value.value.data).toString();
    }
    attachment.close();
  });

  it('refuses the seventeenth stream that needs no token, and takes calls beside them', async () => {
    await using raw = await peer();
    const watch = (stream: number) => [
      frame(HEADERS, END_HEADERS, stream, headerBlock(HEALTH)),
      frame(DATA, END_STREAM, stream, message(Buffer.alloc(0))),
    ];
    for (let n = 0; n < 17; n += 1) raw.send(...watch(2 * n + 1));
    expect(await raw.reset(33)).toBe('REFUSED_STREAM');
    raw.send(
      frame(HEADERS, END_HEADERS, 35, headerBlock(GET, await bearer())),
      frame(DATA, END_STREAM, 35, message(Buffer.alloc(0))),
    );
    await raw.until(({ type, stream }) => type === HEADERS && stream === 35);
    expect(raw.frames.filter(({ stream, type }) => stream < 33 && type === 3)).toEqual([]);
  });

  it('answers reflection no faster than the answers are read', async () => {
    const question = message(Buffer.from([0x22, 26, ...Buffer.from('grantty.v1.TerminalService')]));
    const noWindow = Buffer.concat([Buffer.from([0, 4]), uint32(0)]);
    await using raw = await peer(noWindow);
    // Nearly the window of 64 KiB: what has been taken of it is given back once it is half.
    const questions = Math.floor(60_000 / question.length);
    raw.send(frame(HEADERS, END_HEADERS, 1, headerBlock(REFLECTION)));
    for (let n = 0; n < questions; n += 100) {
      raw.send(
        frame(DATA, 0, 1, Buffer.concat(Array(Math.min(100, questions - n)).fill(question))),
      );
    }
    // The server is asked something else behind all that, and has answered.
    raw.send(
      frame(HEADERS, END_HEADERS, 3, headerBlock(GET)),
      frame(DATA, END_STREAM, 3, message(Buffer.alloc(0))),
    );
    await raw.until(({ type, stream }) => type === HEADERS && stream === 3);
    const room = Buffer.concat([Buffer.from([0, 4]), uint32(2 ** 30)]);
    const answered = () =>
      raw.frames
        .filter(({ type, stream }) => type === DATA && stream === 1)
        .reduce((sum, { payload }) => sum + payload.length, 0);
    expect(answered()).toBe(0);
    const isGivenBack = ({ type, stream }: { type: number; stream: number }) =>
      type === WINDOW_UPDATE && stream === 1;
    expect(raw.frames.filter(isGivenBack)).toEqual([]);
    raw.send(frame(SETTINGS, 0, 0, room), frame(WINDOW_UPDATE, 0, 0, uint32(2 ** 30)));
    raw.send(frame(DATA, END_STREAM, 1));
    await raw.until(({ type, stream, flags }) => type === HEADERS && stream === 1 && flags === 5);
    expect(answered()).toBeGreaterThan(questions * 1000);
  }, 60_000);

  it('takes no compressed request, sound, broken or a bomb', async () => {
    const session = connectHttp2(`https://127.0.0.1:${port()}`, { ca: service.ca });
    const statusOf = async (encoding: string, body: Buffer) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/grantty.v1.ServerService/GetServerInfo',
        'content-type': 'application/grpc',
        'grpc-encoding': encoding,
        authorization: (await bearer())[0]?.[1],
      });
      let status: unknown;
      stream.on('response', (headers) => {
        status = headers['grpc-status'];
      });
      stream.on('trailers', (headers) => {
        status = headers['grpc-status'];
      });
      stream.resume();
      stream.end(body);
      await once(stream, 'close');
      return Number(status);
    };
    const UNIMPLEMENTED = 12;
    expect(await statusOf('gzip', message(gzipSync(''), 1))).toBe(UNIMPLEMENTED);
    expect(await statusOf('gzip', message(Buffer.from('none'), 1))).toBe(UNIMPLEMENTED);
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    expect(await statusOf('gzip', message(bomb, 1))).toBe(UNIMPLEMENTED);
    expect(await statusOf('deflate', message(Buffer.from('none'), 1))).toBe(UNIMPLEMENTED);
    // Announced and not used is none.
    expect(await statusOf('gzip', message(Buffer.alloc(0)))).toBe(0);
    session.close();
  });

  it('does not renegotiate TLS', async () => {
    const socket = await tls({ maxVersion: 'TLSv1.2' });
    socket.on('error', () => {});
    socket.resume();
    const outcome = await new Promise<string>((resolve) => {
      socket.on('close', () => resolve('closed'));
      socket.renegotiate({}, (error) => resolve(error ? 'refused' : 'renegotiated'));
    });
    expect(outcome).not.toBe('renegotiated');
    socket.destroy();
    await untilAlone();
  });
});

describe('a server that asks its peers for signs of life', () => {
  let service: TestService;
  beforeEach(async () => {
    service = await startService({ limits: impatience });
  });
  afterEach(() => service[Symbol.asyncDispose]());

  it('closes a connection that broke the protocol, whether or not the peer ever does', async () => {
    const raw = await RawHttp2.open(await tlsTo(service));
    raw.send(
      frame(HEADERS, END_HEADERS, 1, headerBlock(GET)),
      frame(DATA, END_STREAM, 1, message(Buffer.alloc(0))),
    );
    await raw.until(({ type }) => type === HEADERS);
    raw.send(frame(HEADERS, END_HEADERS | END_STREAM, 3, Buffer.alloc(4, 0xff)));
    expect(await raw.end()).toBe('COMPRESSION_ERROR');
    await until(() => service.server.load.connections === 0);
    await raw[Symbol.asyncDispose]();
  });

  it('notices a client that is stopped, and lets go of its stream and its connection', async () => {
    const text = `
      const { connect } = require('node:http2');
      const session = connect('https://127.0.0.1:${service.server.port}', { ca: process.env.CA });
      const stream = session.request({ ':method': 'POST', ':path': '/grantty.v1.TerminalService/Watch',
        'content-type': 'application/grpc', authorization: 'Bearer ' + process.env.TOKEN });
      stream.on('data', () => console.log('watching'));
      stream.end(Buffer.from(process.env.REQUEST, 'hex'));`;
    const client = service.client();
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command: ['cat'] });
    client.close();
    const request = message(Buffer.from([0x0a, 4, 0x12, 2, ...Buffer.from('t1')]));
    const child = spawn(process.execPath, ['-e', text], {
      env: {
        ...process.env,
        CA: service.ca,
        TOKEN: await service.token(),
        REQUEST: request.toString('hex'),
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(child.stdout, 'data');
      expect(service.server.load.streams).toBe(1);
      child.kill('SIGSTOP');
      await until(() => service.server.load.connections === 0);
      expect(service.server.load.streams).toBe(0);
    } finally {
      child.kill('SIGKILL');
    }
  }, 60_000);
});
