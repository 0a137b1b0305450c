/** A process that is stopped and goes on: the supervisor's, and the server's. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Client, connect } from '../../src/client/connect.js';
import { TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { type DevServer, startDevServer } from '../support/devServer.js';
import { healthClient } from '../support/health.js';
import { owner } from '../support/registry.js';
import { seqsTo, transcriptOf, watchAll } from '../support/streams.js';

/** Milliseconds after which a call must have been answered: twice the silence that is borne. */
const BOUND_MS = 20_000;

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: { code?: string; reason?: string }) => error,
  );

/**
 * Prints its lines as long as its input has not said stop, then how many they were. A read that is over
 * its time may have a part of the word.
 */
const counter = [
  'bash',
  '-c',
  'stty -echo -opost; while :; do n=$((n+1)); echo line $n; read -t 0.02 part; said=$said$part; [[ $said = *stop ]] && break; done; echo total $n',
];

/** That the output is `line 1` … `line n`, then `total n`. */
function isWhole(output: Buffer): boolean {
  const lines = output.toString().trimEnd().split('\n');
  const total = Number(/^total (\d+)$/.exec(lines.pop() ?? '')?.[1]);
  return lines.length === total && lines.every((line, at) => line === `line ${at + 1}`);
}

describe('a process that is frozen', () => {
  let stateDir: string;
  let server: DevServer;
  let client: Client;
  let ca: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-frozen-'));
    server = await startDevServer(stateDir);
    client = await server.client();
    ca = await readFile(server.settings.GRANTTY_CA ?? '', 'utf8');
  });

  afterEach(async () => {
    await server[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true });
  });

  const supervisorPid = async () =>
    Number(await readFile(join(stateDir, 'supervisor.pid'), 'utf8'));

  it('as the supervisor, is told from calls in bounded time, leaves revocations in force, and loses nothing when it goes on', async () => {
    using health = healthClient(server.settings.GRANTTY_ADDRESS ?? '', ca);
    const terminal = { id: 'counts' };
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command: counter });
    const watched = watchAll(client, { terminal }, AbortSignal.timeout(120_000));
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'line 20\\n' } });
    const { token } = await client.grants.delegate({
      actor: 'helper',
      grants: [
        {
          id: 'g1',
          parentGrantId: 'dev',
          actions: ['terminal.read'],
          resource: { owner, agent: '*', session: '*', terminal: '*' },
        },
      ],
    });
    const address = server.settings.GRANTTY_ADDRESS ?? '';
    using helper = connect({ address, ca, token: async () => token });
    await helper.terminals.getTerminal({ terminal });

    const pid = await supervisorPid();
    process.kill(pid, 'SIGSTOP');
    try {
      const began = performance.now();
      const [impatient, patient, typed, revoked] = await Promise.all([
        failureOf(client.terminals.getTerminal({ terminal }, { timeoutMs: 500 })),
        failureOf(client.terminals.getTerminal({ terminal })),
        failureOf(client.terminals.write({ terminal, data: Buffer.from('never\n') })),
        failureOf(helper.grants.revoke({})),
      ]);
      expect(performance.now() - began).toBeLessThan(BOUND_MS);
      expect(impatient).toMatchObject({ code: 'DEADLINE_EXCEEDED' });
      const unavailable = { code: 'UNAVAILABLE', reason: 'SUPERVISOR_UNAVAILABLE' };
      expect(patient).toMatchObject(unavailable);
      expect(typed).toMatchObject(unavailable);
      expect(revoked).toMatchObject(unavailable);
      // In force all the same, and what needs no supervisor is answered.
      const refused = await failureOf(helper.grants.introspect({}));
      expect(refused).toMatchObject({ code: 'PERMISSION_DENIED', reason: 'GRANT_REVOKED' });
      await client.grants.introspect({});

      await health.until('', 'NOT_SERVING');
      expect(await health.of('grantty.v1.TerminalService')).toBe('NOT_SERVING');
      expect(await health.of('grantty.v1.SessionService')).toBe('NOT_SERVING');
      expect(await health.of('grantty.v1.GrantService')).toBe('SERVING');
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await health.until('', 'SERVING');
    expect(await health.of('grantty.v1.TerminalService')).toBe('SERVING');
    expect(await supervisorPid()).toBe(pid);
    const { terminal: found } = await client.terminals.getTerminal({ terminal });
    expect(found).toMatchObject({ instance: 1 });
    await client.terminals.write({ terminal, data: Buffer.from('stop\n') });
    const { output, seqs } = await watched;
    expect(isWhole(output)).toBe(true);
    expect(seqs).toEqual(seqsTo(seqs.length));
    expect(await failureOf(helper.grants.introspect({}))).toMatchObject({
      reason: 'GRANT_REVOKED',
    });
  }, 150_000);

  it('as the server, leaves terminals running, and its watchers miss no byte', async () => {
    const bytes = 4_000_000;
    const terminal = { id: 'flood' };
    const done = join(stateDir, 'done');
    await promisify(execFile)('mkfifo', [done]);
    const script = `read go; stty -opost -echo; yes 0123456789abcde | head -c ${bytes}; echo done > ${done}; read end`;
    const command = ['sh', '-c', script];
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command });
    const events: Parameters<typeof transcriptOf>[0][number][] = [];
    const stream = client.watch({ terminal });
    await client.terminals.write({ terminal, data: Buffer.from('\n') });
    let isFrozen = false;
    for await (const event of stream) {
      events.push(event);
      if (event.case !== 'output' || isFrozen) continue;
      isFrozen = true;
      process.kill(server.pid, 'SIGSTOP');
      try {
        // The terminal goes on to its end without the server.
        await readFile(done);
      } finally {
        process.kill(server.pid, 'SIGCONT');
      }
      await client.terminals.write({ terminal, data: Buffer.from('\n') });
    }
    const { output, seqs, exitCode } = transcriptOf(events);
    // First the echo of the line that starts it.
    const expected = `\r\n${'0123456789abcde\n'.repeat(bytes / 16)}`;
    const hash = (data: string | Buffer) => createHash('sha256').update(data).digest('hex');
    expect(hash(output)).toBe(hash(expected));
    expect(seqs).toEqual(seqsTo(seqs.length));
    expect(exitCode).toBe(0);
    const { terminal: found } = await client.terminals.getTerminal({ terminal });
    expect(found?.state).toBe(TerminalState.EXITED);
  }, 60_000);
});
