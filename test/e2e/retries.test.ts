import type { Client } from '../../src/client/connect.js';
import { Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { startService, type TestService } from '../support/service.js';
import { watchAll } from '../support/streams.js';

describe('a request with a request_id, sent again before and after a restart of the server', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  /** Sends the request twice, restarts the server, sends it a third time, then one of another body. */
  async function repeat<T>(
    send: (client: Client) => Promise<T>,
    other: (client: Client) => Promise<unknown>,
  ): Promise<T[]> {
    const before = service.client();
    const answers = await Promise.all([send(before), send(before)]);
    await service.restartServer();
    const after = service.client();
    answers.push(await send(after));
    await expect(other(after)).rejects.toMatchObject({
      code: 'ALREADY_EXISTS',
      reason: 'REQUEST_ID_REUSED',
    });
    return answers;
  }

  it('creates one terminal', async () => {
    const request = { agent: 'once', command: ['sleep', '1000'], requestId: 'create-1' };
    const answers = await repeat(
      (client) => client.terminals.createTerminal(request),
      (client) => client.terminals.createTerminal({ ...request, command: ['true'] }),
    );
    expect(new Set(answers.map(({ terminal }) => terminal?.uid)).size).toBe(1);
    // The supervisor has what it remembers of Create from the record on disk.
    await service.restartAll();
    const again = await service.client().terminals.createTerminal(request);
    expect(again.terminal?.uid).toBe(answers[0]?.terminal?.uid);
    await expect(
      service.client().terminals.createTerminal({ ...request, command: ['true'] }),
    ).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
    expect((await service.supervisor.list()).length).toBe(1);
  });

  it('writes once', async () => {
    const { terminals } = service.client();
    const terminal = { id: 'writes' };
    await terminals.createTerminal({
      agent: 'a',
      ...terminal,
      command: ['sh', '-c', 'read a; read b; echo "$a,$b"'],
    });
    const request = { terminal, data: Buffer.from('x\n'), requestId: 'write-1' };
    await repeat(
      (client) => client.terminals.write(request),
      (client) => client.terminals.write({ ...request, data: Buffer.from('y\n') }),
    );
    const client = service.client();
    await client.terminals.write({ terminal, data: Buffer.from('z\n') });
    const { output } = await watchAll(client, { terminal });
    expect(output.toString().trim().endsWith('x,z')).toBe(true);
  });

  it('starts one instance', async () => {
    const client = service.client();
    const terminal = { id: 'starts' };
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command: ['true'] });
    await client.terminals.wait({ terminal, condition: { case: 'exit', value: true } });
    const request = { terminal, requestId: 'start-1' };
    await repeat(
      (sender) => sender.terminals.startTerminal(request),
      (sender) => sender.terminals.startTerminal({ ...request, size: { columns: 9, rows: 9 } }),
    );
    // The supervisor has what it remembers of the latest Start from the record on disk, too.
    await service.restartAll();
    const again = await service.client().terminals.startTerminal(request);
    expect(again.terminal?.instance).toBe(2);
    await expect(
      service.client().terminals.startTerminal({ ...request, size: { columns: 9, rows: 9 } }),
    ).rejects.toMatchObject({ reason: 'REQUEST_ID_REUSED' });
    const another = { ...request, requestId: 'start-2' };
    const next = await service.client().terminals.startTerminal(another);
    expect(next.terminal?.instance).toBe(3);
  });

  it('signals once', async () => {
    const { terminals } = service.client();
    const terminal = { id: 'signals' };
    const script = 'trap "echo got" USR1; echo ready; while :; do sleep 0.05; done';
    await terminals.createTerminal({ agent: 'a', ...terminal, command: ['sh', '-c', script] });
    await terminals.wait({ terminal, condition: { case: 'pattern', value: 'ready' } });
    const request = { terminal, signal: Signal.USR1, requestId: 'signal-1' };
    await repeat(
      (client) => client.terminals.signal(request),
      (client) => client.terminals.signal({ ...request, signal: Signal.HUP }),
    );
    const client = service.client();
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'got' } });
    await client.terminals.kill({ terminal });
    const { output } = await watchAll(client, { terminal });
    expect(output.toString().match(/got/g)).toHaveLength(1);
  });
});
