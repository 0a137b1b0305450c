import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from '../../src/client/connect.js';
import type { CallError } from '../../src/client/failure.js';
import { PROTOCOL_VERSION } from '../../src/supervisor/socket/protocol.js';
import { CTX, type DevServer, startDevServer } from '../support/devServer.js';
import { buildOf } from '../support/otherBuild.js';

const run = promisify(execFile);

const FLOODS = 20;
const FLOOD_BYTES = 4_000_000;

describe('a server of another build in place of a running one', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-deploy-'));
  });

  afterEach(async () => {
    await run(process.execPath, [CTX, 'supervise', '--stop', '--state-dir', stateDir]);
    await rm(stateDir, { recursive: true });
  });

  /** On the address of the one that it replaces. */
  const atAddressOf = ({ settings }: DevServer) => ['--listen', settings.GRANTTY_ADDRESS ?? ''];

  it('goes on with 20 floods under the older supervisor: watchers are sent away, resume, and miss no byte', async () => {
    await using next = await buildOf('99.0.0');
    await using old = await startDevServer(stateDir);
    const client = await old.client();
    const { version: oldVersion } = await client.server.getServerInfo({});
    const supervisor = await readFile(join(stateDir, 'supervisor.pid'), 'utf8');
    const ids = Array.from({ length: FLOODS }, (_, i) => `flood-${i}`);
    const script = `stty -opost -echo; echo up; read go; yes 0123456789abcde | head -c ${FLOOD_BYTES}`;
    for (const id of ids) {
      await client.terminals.createTerminal({ agent: 'a', id, command: ['sh', '-c', script] });
      await client.terminals.wait({
        terminal: { id },
        condition: { case: 'pattern', value: 'up' },
      });
    }
    const flowing = new AbortController();
    const watching = ids.map((id) => watched(client, id, flowing));
    for (const id of ids) {
      await client.terminals.write({ terminal: { id }, data: Buffer.from('\n') });
    }
    if (!flowing.signal.aborted) await once(flowing.signal, 'abort');
    expect(await old.end('SIGTERM')).toBe(0);

    await using current = await startDevServer(stateDir, atAddressOf(old), [], next.program);
    const again = await current.client();
    const { version } = await again.server.getServerInfo({});
    expect([oldVersion, version]).toEqual([expect.not.stringMatching('99.0.0'), '99.0.0']);
    expect(await readFile(join(stateDir, 'supervisor.pid'), 'utf8')).toBe(supervisor);
    const expected = createHash('sha256')
      .update(`up\n${'0123456789abcde\n'.repeat(FLOOD_BYTES / 16)}`)
      .digest('hex');
    const seen = await Promise.all(watching);
    client.close();
    for (const { hash, exitCode, seqs } of seen) {
      expect({ hash, exitCode }).toEqual({ hash: expected, exitCode: 0 });
      expect(seqs.every((seq, i) => seq === BigInt(i + 1))).toBe(true);
    }
    const sentAway = seen.flatMap(({ interruptions }) => interruptions.slice(0, 1));
    expect(sentAway.length).toBeGreaterThan(0);
    expect(new Set(sentAway)).toEqual(new Set(['SERVER_DRAINING']));
  }, 180_000);

  it('refuses to start under a supervisor of another protocol, and says what to do', async () => {
    await using next = await buildOf('99.0.0');
    await next.edit(
      'supervisor/socket/protocol.js',
      `PROTOCOL_VERSION = ${PROTOCOL_VERSION}`,
      'PROTOCOL_VERSION = 999',
    );
    await using old = await startDevServer(stateDir);
    const client = await old.client();
    await client.terminals.createTerminal({ agent: 'a', id: 'kept', command: ['cat'] });
    client.close();
    await old.end('SIGTERM');
    await expect(startDevServer(stateDir, [], [], next.program)).rejects.toThrow(
      /speaks version 999 .*run both from one release.*ctx supervise --stop --state-dir/s,
    );
    // It has left the supervisor and its terminals alone.
    await using back = await startDevServer(stateDir);
    const again = await back.client();
    const { terminal } = await again.terminals.getTerminal({ terminal: { id: 'kept' } });
    expect(terminal).toMatchObject({ instance: 1, pid: expect.any(Number) });
  }, 180_000);
});

/** The whole of one terminal's output through `client`, and why its stream was interrupted. */
async function watched(client: Client, id: string, flowing: AbortController) {
  const hash = createHash('sha256');
  const seqs: bigint[] = [];
  const interruptions: string[] = [];
  let exitCode: number | undefined;
  const onInterruption = (failure: unknown) => {
    const { reason, code } = failure as CallError;
    interruptions.push(reason ?? code);
  };
  for await (const event of client.watch({ terminal: { id } }, { onInterruption })) {
    if (event.case === 'output') {
      hash.update(event.value.data);
      seqs.push(event.value.seq);
      if (event.value.data.length > 4_096) flowing.abort();
    } else if (event.case === 'exited') {
      seqs.push(event.value.seq);
      exitCode = event.value.status?.exitCode;
    }
  }
  return { hash: hash.digest('hex'), seqs, exitCode, interruptions };
}
