/** The port: what it lets in, what it says of itself, and how it goes away. */
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { createConnection } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { credentials, Metadata, status } from '@grpc/grpc-js';
import { service as healthService } from 'grpc-health-check';
import type { Name } from '../../src/core/names.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { type Certificates, makeCertificates } from './certificates.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';
import { eventsOf } from './streams.js';

const ref = { terminal: { owner: '1000', id: 't1' } };

/** What grpc.health.v1 says of a service; the call needs no token. */
function healthOf(harness: Harness, service: string): Promise<{ status: string }> {
  const check = healthService.Check;
  if (!check) throw new Error('no health service');
  return new Promise((resolve, reject) => {
    harness.client.makeUnaryRequest(
      check.path,
      check.requestSerialize,
      check.responseDeserialize,
      { service },
      (error, reply) => {
        if (error) reject(error);
        else resolve(reply as { status: string });
      },
    );
  });
}

describe('the server', () => {
  it('tells its health without a token, as a whole and by service', async () => {
    await using harness = await Harness.start();
    for (const service of ['', 'grantty.v1.TerminalService', 'grantty.v1.ServerService']) {
      expect((await healthOf(harness, service)).status).toBe('SERVING');
    }
  });

  it('is not healthy without its supervisor, but for grants, and is again with it', async () => {
    await using harness = await Harness.start();
    const statuses = async () => {
      const names = ['', 'TerminalService', 'SessionService', 'ServerService', 'GrantService'];
      const said: string[] = [];
      for (const name of names) {
        said.push((await healthOf(harness, name && `grantty.v1.${name}`)).status);
      }
      return said;
    };
    const [up, down] = ['SERVING', 'NOT_SERVING'];
    harness.server.supervisorIs(false);
    expect(await statuses()).toEqual([down, down, down, down, up]);
    harness.server.supervisorIs(true);
    expect(await statuses()).toEqual([up, up, up, up, up]);
  });

  it('describes its services to reflection without a token', async () => {
    await using harness = await Harness.start();
    const { names, files } = await reflect(harness);
    expect(names).toEqual(expect.arrayContaining(['grantty.v1.TerminalService']));
    expect(files.some((file) => file.includes('grantty/v1/terminal_service.proto'))).toBe(true);
    expect(files.some((file) => file.includes('google/protobuf/timestamp.proto'))).toBe(true);
  });

  it('refuses a message of more than 256 KiB', async () => {
    await using harness = await Harness.start();
    await harness.supervisor.add({ id: 't1' as Name });
    const data = Buffer.alloc(257 * 1024);
    const call = harness.unary(terminals.write, { ...ref, data }, await harness.token());
    expect((await failureOf(call)).code).toBe(status.RESOURCE_EXHAUSTED);
    expect(harness.supervisor.calls).toEqual([]);
  });

  it('drops a connection that makes no call, and keeps one that does', async () => {
    await using harness = await Harness.start({ limits: { firstCallMs: 300 } });
    await harness.supervisor.add({ id: 't1' as Name });
    const token = await harness.token();
    await harness.unary(terminals.getTerminal, ref, token);
    const silent = createConnection({ host: '127.0.0.1', port: harness.server.port });
    silent.resume();
    await once(silent, 'close');
    while (harness.server.load.connections > 1)
      await new Promise((resolve) => setImmediate(resolve));
    await harness.unary(terminals.getTerminal, ref, token);
  });

  it('turns away connections above its number', async () => {
    await using harness = await Harness.start({ limits: { maxConnections: 1 } });
    await harness.supervisor.add({ id: 't1' as Name });
    await harness.unary(terminals.getTerminal, ref, await harness.token());
    const second = createConnection({ host: '127.0.0.1', port: harness.server.port });
    second.on('error', () => {});
    await once(second, 'close');
    expect(harness.server.load.connections).toBe(1);
  });

  it('survives a peer that resets its connection or talks nonsense', async () => {
    await using harness = await Harness.start();
    await harness.supervisor.add({ id: 't1' as Name });
    for (const words of [
      'GET / HTTP/1.1\r\n\r\n',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff',
    ]) {
      const peer = createConnection({ host: '127.0.0.1', port: harness.server.port });
      peer.on('error', () => {});
      await once(peer, 'connect');
      peer.write(words, 'latin1');
      peer.resume();
      peer.resetAndDestroy();
      await once(peer, 'close');
    }
    await harness.unary(terminals.getTerminal, ref, await harness.token());
  });

  describe('going away', () => {
    it('ends streams with the last seq and a time to come back, and takes no calls', async () => {
      await using harness = await Harness.start();
      const terminal = await harness.supervisor.add({ id: 't1' as Name });
      const token = await harness.token();
      await terminal.print('x');
      const stream = harness.serverStream(terminals.watch, ref, token);
      for (let i = 0; i < 3; i += 1) await stream.next();
      const health = harness.client;
      await healthOf(harness, '');
      const drained = harness.server.drain(5_000);
      const rest = await stream.rest();
      expect(eventsOf(rest, 'closing')[0]).toMatchObject({
        reason: ClosingReason.SERVER_DRAINING,
        lastSeq: 1n,
      });
      expect(stream.error?.code).toBe(status.UNAVAILABLE);
      const { info, retry } = detailsOf(stream.error);
      expect(info?.reason).toBe('SERVER_DRAINING');
      expect(retry?.retryDelay).toBeDefined();
      await drained;
      health.close();
      expect(harness.server.load).toEqual({ streams: 0, watchedTerminals: 0, connections: 0 });
    });

    it('lets a call in progress finish', async () => {
      await using harness = await Harness.start();
      const terminal = await harness.supervisor.add({ id: 't1' as Name });
      let open = () => {};
      terminal.inputGate = new Promise((resolve) => {
        open = resolve;
      });
      const written = harness.unary(
        terminals.write,
        { ...ref, data: Buffer.from('x') },
        await harness.token(),
      );
      while (!harness.supervisor.effects.includes('write')) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      const drained = harness.server.drain(5_000);
      open();
      expect((await written).written).toBe(1);
      await drained;
    });

    it('cuts off what does not end in the grace', async () => {
      await using harness = await Harness.start();
      const terminal = await harness.supervisor.add({ id: 't1' as Name });
      terminal.inputGate = new Promise(() => {});
      const written = failureOf(
        harness.unary(terminals.write, { ...ref, data: Buffer.from('x') }, await harness.token()),
      );
      while (!harness.supervisor.effects.includes('write')) {
        await new Promise((resolve) => setImmediate(resolve));
      }
      await harness.server.drain(100);
      expect((await written).code).toBe(status.UNAVAILABLE);
      expect(harness.server.load.connections).toBe(0);
    });

    it('may be asked twice', async () => {
      await using harness = await Harness.start();
      await Promise.all([harness.server.drain(100), harness.server.drain(100)]);
    });
  });
});

describe('the server over TLS', () => {
  let certificates: Certificates | undefined;
  let harness: Harness | undefined;
  beforeAll(async () => {
    certificates = await makeCertificates();
    if (!certificates) return;
    const { server, ca } = certificates;
    harness = await Harness.start({ tls: { cert: server.cert, key: server.key, clientCa: ca } });
    await harness.supervisor.add({ id: 't1' as Name });
  });
  afterAll(() => harness?.[Symbol.asyncDispose]());

  /** Runs the test where there are certificates, and says so where there are not. */
  const withTls = (
    name: string,
    test: (harness: Harness, certificates: Certificates) => Promise<void>,
  ) =>
    it(name, async () => {
      if (!harness || !certificates) {
        process.stderr.write(`skipped, as there is no openssl here: ${name}\n`);
        return;
      }
      await test(harness, certificates);
    });

  const client = (
    on: Harness,
    { ca }: Certificates,
    own?: { readonly key: Buffer; readonly cert: Buffer },
  ) =>
    on.connect(credentials.createSsl(ca, own?.key ?? null, own?.cert ?? null), {
      'grpc.ssl_target_name_override': 'localhost',
    });

  const get = (on: Harness, token: string, by: ReturnType<typeof client>) =>
    on.unary(terminals.getTerminal, ref, token, { client: by });

  withTls('serves who brings no certificate', async (on, made) => {
    await get(on, await on.token(), client(on, made));
  });

  withTls(
    'honours a bound token over the connection of its certificate alone',
    async (on, made) => {
      const bound = await on.token([{}], { x5tS256: made.client.thumbprint });
      await get(on, bound, client(on, made, made.client));
      const error = await failureOf(get(on, bound, client(on, made)));
      expect(detailsOf(error).info?.reason).toBe('POP_MISMATCH');
    },
  );

  withTls(
    'honours it over a resumed TLS session, and none for who had no certificate',
    async (on, made) => {
      const bound = await on.token([{}], { x5tS256: made.client.thumbprint });
      const decide = () =>
        new Promise<{ decision: string; reason?: string | undefined }>((resolve) => {
          on.onIntent = resolve;
        });
      for (const own of [{ cert: made.client.cert, key: made.client.key }, {}]) {
        const tls = { ca: made.ca, servername: 'localhost', ALPNProtocols: ['h2'], ...own };
        const session = await ticket(on.server.port, tls);
        const socket = connectTls({ host: '127.0.0.1', port: on.server.port, ...tls, session });
        await once(socket, 'secureConnect');
        expect(socket.isSessionReused()).toBe(true);
        const http2 = connectHttp2('https://localhost', { createConnection: () => socket });
        const decided = decide();
        const stream = http2.request({
          ':method': 'POST',
          ':path': '/grantty.v1.TerminalService/GetTerminal',
          'content-type': 'application/grpc',
          authorization: `Bearer ${bound}`,
        });
        stream.on('error', () => {});
        stream.end(Buffer.from([0, 0, 0, 0, 4, 10, 2, 18, 0]));
        const { reason } = await decided;
        // With the certificate it gets as far as the empty id.
        expect(reason).toBe('cert' in own ? 'FIELD_INVALID' : 'POP_MISMATCH');
        http2.destroy();
      }
    },
  );

  withTls('survives who does not speak TLS', async (on, made) => {
    const peer = createConnection({ host: '127.0.0.1', port: on.server.port });
    peer.on('error', () => {});
    peer.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
    peer.resume();
    await once(peer, 'close');
    await get(on, await on.token(), client(on, made));
  });

  withTls('does not take a certificate of another authority for proof', async (on, made) => {
    const bound = await on.token([{}], { x5tS256: made.stranger.thumbprint });
    const error = await failureOf(get(on, bound, client(on, made, made.stranger)));
    expect(detailsOf(error).info?.reason).toBe('POP_MISMATCH');
  });

  withTls('speaks no TLS older than 1.2', async (on, made) => {
    const attempt = (maxVersion: 'TLSv1.1' | 'TLSv1.2') =>
      new Promise<string>((resolve) => {
        const socket = connectTls({
          host: '127.0.0.1',
          port: on.server.port,
          servername: 'localhost',
          ca: made.ca,
          minVersion: 'TLSv1',
          maxVersion,
          ciphers: 'DEFAULT@SECLEVEL=0',
          ALPNProtocols: ['h2'],
        });
        socket.on('secureConnect', () => {
          resolve(socket.getProtocol() ?? '');
          socket.destroy();
        });
        socket.on('error', () => resolve('refused'));
      });
    expect(await attempt('TLSv1.2')).toBe('TLSv1.2');
    expect(await attempt('TLSv1.1')).toBe('refused');
  });

  withTls('refuses metadata of more than 16 KiB', async (on, made) => {
    const session = connectHttp2(`https://127.0.0.1:${on.server.port}`, {
      ca: made.ca,
      servername: 'localhost',
    });
    const [settings] = (await once(session, 'remoteSettings')) as [{ maxHeaderListSize: number }];
    expect(settings.maxHeaderListSize).toBe(16 * 1024);
    const outcome = new Promise<string>((resolve) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/grantty.v1.TerminalService/GetTerminal',
        'content-type': 'application/grpc',
        'x-large': 'x'.repeat(17 * 1024),
      });
      stream.on('response', () => resolve('answered'));
      stream.on('error', () => resolve('refused'));
      stream.on('close', () => resolve('refused'));
      stream.end();
    });
    expect(await outcome).toBe('refused');
    session.destroy();
  });

  withTls('gives a new certificate to new connections', async (on, made) => {
    const fresh = await makeCertificates();
    if (!fresh) throw new Error('there was an openssl before');
    on.server.replaceTls({ cert: fresh.server.cert, key: fresh.server.key, clientCa: made.ca });
    await get(on, await on.token(), client(on, { ...made, ca: fresh.ca }));

    // What no connection could come about with is refused, and what was there stays.
    const unsound = [
      { cert: Buffer.from('none'), key: made.server.key, clientCa: made.ca },
      { cert: made.server.cert, key: fresh.server.key, clientCa: made.ca },
      { cert: made.server.cert, key: made.server.key, clientCa: Buffer.from('none') },
    ];
    for (const material of unsound) expect(() => on.server.replaceTls(material)).toThrow();
    await get(on, await on.token(), client(on, { ...made, ca: fresh.ca }));
  });
});

/** Names of services and the descriptors of one, by the reflection protocol. */
async function reflect(harness: Harness): Promise<{ names: string[]; files: string[] }> {
  const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
  const identity = (bytes: Buffer) => bytes;
  const call = harness.client.makeBidiStreamRequest(path, identity, identity, new Metadata());
  const replies: Buffer[] = [];
  call.on('data', (reply: Buffer) => replies.push(reply));
  // list_services = 7, file_containing_symbol = 4 (grpc/reflection/v1/reflection.proto).
  const field = (number: number, text: string) =>
    Buffer.concat([Buffer.from([(number << 3) | 2, text.length]), Buffer.from(text)]);
  call.write(field(7, '*'));
  call.write(field(4, 'grantty.v1.TerminalService'));
  call.end();
  await once(call, 'end');
  const names = (replies[0]?.toString('latin1') ?? '').match(/grantty\.v1\.\w+/g) ?? [];
  return { names, files: replies.slice(1).map((reply) => reply.toString('latin1')) };
}

/** A TLS session to be resumed. */
async function ticket(port: number, options: object): Promise<Buffer> {
  const socket = connectTls({ host: '127.0.0.1', port, ...options });
  socket.resume();
  const [session] = (await once(socket, 'session')) as [Buffer];
  socket.destroy();
  return session;
}
