/** Secrets are planted wherever a caller can put one, and every file of the service is searched. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect, promisify } from 'node:util';
import type { Client } from '../../src/client/connect.js';
import {
  AttachmentKind,
  Signal,
  type TerminalRef,
} from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { CTX, startDevServer } from '../support/devServer.js';
import { filesWith, holds } from '../support/filesWith.js';

const run = promisify(execFile);

const ENV = 'canary-of-the-environment-7d1c';
const INPUT = 'canary-of-the-input-91fe';
const FORGED = 'canary-of-a-forged-token-c0de';

describe('secrets', () => {
  let stateDir: string;

  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-secrets-'));
  });

  afterAll(async () => {
    await run(process.execPath, [CTX, 'supervise', '--stop', '--state-dir', stateDir]);
    await rm(stateDir, { recursive: true });
  });

  it('are in no file, log or error but where they belong, whatever was done and however it ended', async () => {
    const told: unknown[] = [];
    const failing = async (call: Promise<unknown>) => {
      const error: unknown = await call.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeDefined();
      told.push(error);
    };
    const { signatures, said } = await work(stateDir, failing);

    expect(told).toHaveLength(9);
    for (const secret of [ENV, INPUT, FORGED, ...signatures]) {
      expect(holds(inspect(told, { depth: 9 }), secret)).toBe(false);
      expect(holds(said, secret)).toBe(false);
    }
    const [own = '', ...others] = signatures;
    expect(await filesWith(stateDir, own)).toEqual(['dev/token']);
    for (const signature of others) expect(await filesWith(stateDir, signature)).toEqual([]);
    expect(await filesWith(stateDir, INPUT)).toEqual([]);
    expect(await filesWith(stateDir, FORGED)).toEqual([]);
    const kept = await filesWith(stateDir, ENV);
    expect(kept.map((path) => path.slice(path.lastIndexOf('/') + 1))).toEqual(['env.json']);
  }, 180_000);
});

/** One working day with two servers, the first of which is killed. */
async function work(stateDir: string, failing: (call: Promise<unknown>) => Promise<void>) {
  await using first = await startDevServer(stateDir);
  const client = await first.client();
  const tokenFile = first.settings.GRANTTY_TOKEN_FILE ?? '';
  const former = (await readFile(tokenFile, 'utf8')).trim();
  const ref = await silent(client, 'kept');
  await client.terminals.write({ terminal: ref, data: Buffer.from(`${INPUT}\n`) });
  {
    await using attachment = await client.attach({ kind: AttachmentKind.HUMAN, terminal: ref });
    await attachment.input(Buffer.from(`${INPUT}\n`));
    for await (const event of attachment.events) if (event.case === 'inputAck') break;
  }
  await client.terminals.wait({ terminal: ref, condition: { case: 'pattern', value: 'got.*got' } });
  const session = await silentSession(client);
  await send(client, session, INPUT);

  const env = { CANARY: ENV };
  const create = (init: object) => client.terminals.createTerminal({ agent: 'a', ...init });
  await failing(create({ id: 'no-command', env, command: ['/no/such/program'] }));
  await failing(create({ id: 'no-place', env, cwd: '/no/such/place' }));
  await failing(create({ id: 'kept', env }));
  await failing(create({ id: 'no-name', env: { 'NOT A NAME': ENV } }));
  await failing(create({ id: 'too-long', env: { CANARY: ENV.repeat(4096) } }));

  const { grants } = await client.grants.introspect({});
  const parts = grants.map((grant) => ({
    ...grant,
    parentGrantId: grant.id,
    actions: ['terminal.write'],
  }));
  const delegate = () =>
    client.grants.delegate({ actor: 'helper', grants: parts, requestId: 'once' });
  const { token, id } = await delegate();
  const data = Buffer.from(`${INPUT}\x03`);
  await failing(client.terminals.write({ terminal: ref, data }, { token }));
  await failing(client.grants.introspect({}, { token: `${FORGED}.${FORGED}.${FORGED}` }));
  await first.end('SIGKILL');

  await using second = await startDevServer(stateDir);
  const again = await second.client();
  const own = (await readFile(tokenFile, 'utf8')).trim();
  const other = await again.grants.delegate({ actor: 'helper', grants: parts, requestId: 'other' });
  const named = { issuer: id?.issuer ?? '', jti: id?.jti ?? '' };
  await again.grants.revoke({ token: named }, { token: former });
  await failing(again.terminals.write({ terminal: ref, data }, { token }));
  await again.terminals.signal({ terminal: ref, signal: Signal.INT });
  await again.terminals.kill({ terminal: ref });
  await failing(again.terminals.write({ terminal: ref, data: Buffer.from(INPUT) }));
  again.close();
  expect(await second.end('SIGTERM')).toBe(0);
  return {
    signatures: [own, former, token, other.token].map(signatureOf),
    said: first.said() + second.said(),
  };
}

/** Sends to a session and reads what comes of it to the end. */
async function send(client: Client, terminal: TerminalRef, text: string): Promise<void> {
  const timeout = { seconds: 20n, nanos: 0 };
  let last: string | undefined;
  for await (const { event } of client.sessions.send({ terminal, text, timeout }))
    last = event.case;
  expect(last).toBe('result');
}

/** A session that shows nothing of what is sent, and keeps no history of it. */
async function silentSession(client: Client): Promise<TerminalRef> {
  const { session } = await client.sessions.spawn({ agent: 'a', type: 'shell' });
  if (!session?.terminal) throw new Error('no session');
  const { terminal } = session;
  const script = 'stty -echo; printf %s%s sil ent; while read -r line; do printf got; done';
  await send(client, terminal, `exec sh -c '${script}'`);
  await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'silent' } });
  return terminal;
}

function signatureOf(token: string): string {
  return token.slice(token.lastIndexOf('.') + 1);
}

/** A terminal that shows nothing of what is typed. */
async function silent(client: Client, id: string) {
  const script = 'stty -echo; echo ready; while read -r line; do printf got; done';
  const { terminal } = await client.terminals.createTerminal({
    ...{ agent: 'a', id, env: { CANARY: ENV } },
    command: ['/bin/sh', '-c', script],
  });
  const ref = { owner: terminal?.ref?.owner ?? '', id };
  await client.terminals.wait({ terminal: ref, condition: { case: 'pattern', value: 'ready' } });
  return ref;
}
