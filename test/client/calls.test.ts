import { create } from '@bufbuild/protobuf';
import { connect } from '../../src/client/connect.js';
import { type CallError, failureOf } from '../../src/client/failure.js';
import {
  type GetTerminalRequest,
  GetTerminalResponseSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { certificates, failure, fakeServer, type Handlers, status, tokenOf } from './fakeServer.js';

async function withServer<T>(
  handlers: Handlers,
  use: (client: ReturnType<typeof connect>) => Promise<T>,
): Promise<T> {
  await using server = await fakeServer(handlers);
  using client = connect({
    address: server.address,
    ca: certificates.ca,
    token: async () => 'the-token',
  });
  return await use(client);
}

describe('a unary call', () => {
  it('carries the token and answers with the decoded message', async () => {
    const response = await withServer(
      {
        getTerminal: (call, callback) => {
          const request = call.request as GetTerminalRequest;
          callback(null, {
            terminal: { agent: tokenOf(call), ref: { id: request.terminal?.id ?? '' } },
          });
        },
      },
      (client) => client.terminals.getTerminal({ terminal: { id: 't1' } }),
    );
    expect(response).toMatchObject(
      create(GetTerminalResponseSchema, { terminal: { agent: 'the-token', ref: { id: 't1' } } }),
    );
  });

  it('rebuilds the reason, its facts, the violations and the delay of a failure', async () => {
    const call = withServer(
      {
        getTerminal: (_, callback) =>
          callback(
            failure({
              code: status.INVALID_ARGUMENT,
              reason: 'FIELD_INVALID',
              metadata: { decision_id: 'd1' },
              field: 'terminal.id',
              retryAfterMs: 1500,
            }),
          ),
      },
      (client) => client.terminals.getTerminal({}),
    );
    await expect(call).rejects.toMatchObject({
      name: 'GranttyError',
      message: 'it failed',
      code: 'INVALID_ARGUMENT',
      reason: 'FIELD_INVALID',
      metadata: { decision_id: 'd1' },
      violations: [{ field: 'terminal.id', description: 'is wrong' }],
      retryAfterMs: 1500,
    } satisfies Partial<CallError>);
  });

  describe('that is sent away', () => {
    const sentAway = failure({
      code: status.UNAVAILABLE,
      reason: 'SERVER_DRAINING',
      retryAfterMs: 1,
    });
    /** Answers the `good`th time that it is asked. */
    const goodAt = (good: number) => {
      const handler: Handlers['write'] & { asked: number } = Object.assign(
        ((_, callback) => {
          handler.asked += 1;
          if (handler.asked < good) callback(sentAway);
          else callback(null, {});
        }) satisfies Handlers['write'],
        { asked: 0 },
      );
      return handler;
    };

    it('goes out again when it changes nothing, or has a request id', async () => {
      const getTerminal = goodAt(6);
      await withServer({ getTerminal }, (client) => client.terminals.getTerminal({}));
      expect(getTerminal.asked).toBe(6);
      const write = goodAt(2);
      await withServer({ write }, (client) => client.terminals.write({ requestId: 'r1' }));
      expect(write.asked).toBe(2);
    });

    it('goes out once when that could have its effect twice', async () => {
      const write = goodAt(2);
      const call = withServer({ write }, (client) => client.terminals.write({}));
      await expect(call).rejects.toMatchObject({ reason: 'SERVER_DRAINING' });
      expect(write.asked).toBe(1);
    });

    it('has no more time for that than it was given', async () => {
      const getTerminal = goodAt(Infinity);
      const call = withServer({ getTerminal }, (client) =>
        client.terminals.getTerminal({}, { timeoutMs: 300 }),
      );
      await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
    });
  });

  it.each(['getTerminal', 'stop', 'kill'] as const)(
    'of %s goes out again a few times when its connection breaks, and then fails',
    async (method) => {
      let asked = 0;
      const handler = (call: object) => {
        asked += 1;
        const { session } = Reflect.get(Reflect.get(call, 'call'), 'stream');
        session.destroy();
      };
      const call = withServer({ [method]: handler }, async (client) => {
        await client.terminals[method]({});
      });
      await expect(call).rejects.toMatchObject({ code: 'UNAVAILABLE', connectionLost: true });
      expect(asked).toBe(4);
    },
  );

  it('gives the status alone for a reason that it does not know', async () => {
    const call = withServer(
      {
        getTerminal: (_, callback) =>
          callback(failure({ code: status.RESOURCE_EXHAUSTED, reason: 'OF_THE_FUTURE' })),
      },
      (client) => client.terminals.getTerminal({}),
    );
    await expect(call).rejects.toMatchObject({ name: 'StatusError', code: 'RESOURCE_EXHAUSTED' });
  });

  it('says UNIMPLEMENTED for a method that the server does not have', async () => {
    const call = withServer({}, (client) => client.terminals.updateTerminal({}));
    await expect(call).rejects.toMatchObject({ name: 'StatusError', code: 'UNIMPLEMENTED' });
  });

  it('fails with the reason of the signal that aborts it', async () => {
    const abort = new AbortController();
    const call = withServer({ getTerminal: () => abort.abort(new Error('enough')) }, (client) =>
      client.terminals.getTerminal({}, { signal: abort.signal }),
    );
    await expect(call).rejects.toThrow('enough');
  });

  it('fails with DEADLINE_EXCEEDED when its time is over', async () => {
    const call = withServer({ getTerminal: () => {} }, (client) =>
      client.terminals.getTerminal({}, { timeoutMs: 50 }),
    );
    await expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' });
  });

  it('throws what the token source throws, and sends nothing', async () => {
    const getTerminal = () => {
      throw new Error('the call was sent');
    };
    await using server = await fakeServer({ getTerminal });
    using client = connect({
      address: server.address,
      ca: certificates.ca,
      token: async () => {
        throw new Error('no token file');
      },
    });
    await expect(client.terminals.getTerminal({})).rejects.toThrow('no token file');
  });
});

describe('a stream that was reset', () => {
  it.each([
    [status.CANCELLED, 'Call cancelled'],
    [status.RESOURCE_EXHAUSTED, 'Bandwidth exhausted or memory limit exceeded'],
    [status.INTERNAL, 'Received RST_STREAM with code 2 (Internal server error)'],
    [status.INTERNAL, 'Received RST_STREAM with code 0 (Call ended without gRPC status)'],
  ])('with %d is a lost connection', (code, details) => {
    expect(failureOf({ code, details })).toMatchObject({ code: 'UNAVAILABLE', message: details });
  });

  it('is not what we cancelled ourselves', () => {
    const cancelled = { code: status.CANCELLED, details: 'Cancelled on client' };
    expect(failureOf(cancelled)).toMatchObject({ code: 'CANCELLED' });
  });
});

describe('a connection', () => {
  it('is refused to a server whose certificate another authority has signed', async () => {
    await using server = await fakeServer({});
    using client = connect({ address: server.address, token: async () => 'the-token' });
    await expect(client.terminals.getTerminal({})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  it('is refused to a server whose certificate names another host', async () => {
    await using server = await fakeServer({});
    using client = connect({
      address: server.address,
      ca: certificates.ca,
      serverName: '127.0.0.2',
      token: async () => 'the-token',
    });
    await expect(client.terminals.getTerminal({})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  it('fails at once with UNAVAILABLE where nobody listens', async () => {
    using client = connect({ address: '127.0.0.1:1', token: async () => 'the-token' });
    await expect(client.terminals.getTerminal({})).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  });

  it('indicates no address as a server name, of which Node.js would warn', async () => {
    const warnings: string[] = [];
    const listen = (warning: Error) => warnings.push(warning.message);
    process.on('warning', listen);
    await withServer({ getTerminal: (_, callback) => callback(null, {}) }, (client) =>
      client.terminals.getTerminal({}),
    );
    process.off('warning', listen);
    expect(warnings.filter((text) => text.includes('ServerName'))).toEqual([]);
  });
});
