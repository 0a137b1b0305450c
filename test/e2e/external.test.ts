/** Server and supervisor as two services, each with the rights that its unit gives it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chmod, chown, mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { makeDevelopmentCertificates } from '../../src/app/certificates.js';
import { generateIssuerKey, mintToken } from '../../src/auth/mint.js';
import { type Client, connect } from '../../src/client/connect.js';
import { capabilities } from '../../src/core/capability.js';
import { GRANT_TYPE } from '../../src/core/grant.js';
import { Signal, TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { CTX } from '../support/devServer.js';
import { onPath, skipAloud } from '../support/skipAloud.js';
import { watchAll } from '../support/streams.js';
import { boundingSet, unitCommand } from '../support/units.js';

const AUDIENCE = 'https://terminals.example';
const ISSUER = 'https://id.example';

/** The server's user, and an owner of terminals: neither needs an account. */
const SERVICE_UID = 61_987;
const owner = '61988';

interface Service {
  readonly process: ChildProcess;
  /** The first line, of those said from the start, that matches. */
  until(pattern: RegExp): Promise<RegExpExecArray>;
  end(): Promise<number | NodeJS.Signals>;
}

function service(command: readonly string[]): Service {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
  const said: string[] = [];
  let tell = () => {};
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line);
    tell();
  });
  const ended = once(child, 'exit').then(([code, signal]) => {
    tell();
    return code ?? signal;
  });
  return {
    process: child,
    async until(pattern) {
      for (;;) {
        for (const line of said) {
          const match = pattern.exec(line);
          if (match) return match;
        }
        if (child.exitCode !== null) throw new Error(`it ended: ${said.join('\n')}`);
        await new Promise<void>((resolve) => {
          tell = resolve;
        });
      }
    },
    end() {
      child.kill('SIGTERM');
      return ended;
    },
  };
}

/** What is to be done at the end, in the reverse order. */
function lastFirst(): AsyncDisposable & { add(undo: () => unknown): void } {
  const undone: (() => unknown)[] = [];
  return {
    add: (undo) => void undone.unshift(undo),
    async [Symbol.asyncDispose]() {
      for (const undo of undone) await undo();
    },
  };
}

/** Whether another user may enter every directory on the way to a file. */
async function isReachable(path: string): Promise<boolean> {
  for (let dir = dirname(path); ; dir = dirname(dir)) {
    if (((await stat(dir)).mode & 0o001) === 0) return false;
    if (dir === dirname(dir)) return true;
  }
}

describe('a server and a supervisor that a service manager starts apart', () => {
  it('need no more rights than their units give, wait for each other, and end apart', async () => {
    if (process.getuid?.() !== 0 || !onPath('setpriv')) {
      return skipAloud('takes root and setpriv, to give rights up');
    }
    if (!(await isReachable(CTX)) || !(await isReachable(process.execPath))) {
      return skipAloud('the program is where another user cannot read it');
    }
    const dir = await mkdtemp(join(tmpdir(), 'grantty-external-'));
    await using cleanup = lastFirst();
    cleanup.add(() => rm(dir, { recursive: true, force: true }));
    const stateDir = join(dir, 'state');
    await chmod(dir, 0o755);
    await mkdir(stateDir, 0o700);
    await chown(stateDir, SERVICE_UID, SERVICE_UID);
    const issuer = await generateIssuerKey();
    const { server, ca } = makeDevelopmentCertificates({
      hosts: ['127.0.0.1'],
      clientName: 'client',
      days: 1,
    });
    await writeFile(join(dir, 'server.pem'), server.cert);
    await writeFile(join(dir, 'server.key'), server.key);
    await chown(join(dir, 'server.key'), SERVICE_UID, SERVICE_UID);
    await writeFile(join(dir, 'jwks.json'), JSON.stringify(issuer.jwks));
    const config = join(dir, 'config.yaml');
    await writeFile(
      config,
      `state_dir: ${stateDir}
listen: 127.0.0.1:0
audience: ${AUDIENCE}
tls: {cert: server.pem, key: server.key}
issuers: [{issuer: '${ISSUER}', jwks_file: jwks.json}]
run_as: {mode: by-uid}
`,
    );
    const started = async (unit: Parameters<typeof unitCommand>[0], user: readonly string[]) => {
      const [, ...args] = await unitCommand(unit);
      const here = args.map((arg) => (arg === '/etc/grantty/config.yaml' ? config : arg));
      const rights = [...user, await boundingSet(unit), '--no-new-privs'];
      const one = service(['setpriv', ...rights, process.execPath, CTX, ...here]);
      cleanup.add(() => one.end());
      return one;
    };
    const asService = [`--reuid=${SERVICE_UID}`, `--regid=${SERVICE_UID}`, '--clear-groups'];
    const startServer = () => started('grantty-server.service', asService);

    const first = await startServer();
    await first.until(/no supervisor answers yet/);
    const supervisor = await started('grantty-supervisor.service', []);
    const token = await mintToken({
      key: issuer.privateJwk,
      issuer: ISSUER,
      audience: AUDIENCE,
      subject: 'tester',
      ttl: 3600,
      now: Date.now(),
      grants: [
        {
          type: GRANT_TYPE,
          id: 'g1',
          actions: capabilities,
          resource: { owner, agent: '*', session: '*', terminal: '*' },
        },
      ],
    });
    const clientOf = async (one: Service): Promise<Client> => {
      const [, address = ''] = await one.until(/serving on (\S+)/);
      const client = connect({ address, ca, token: async () => token });
      cleanup.add(() => client.close());
      return client;
    };

    const client = await clientOf(first);
    const terminal = { owner, id: 't' };
    const script = 'trap "echo got it" INT; id -u; setsid sleep 1000 & while :; do read line; done';
    await client.terminals.createTerminal({
      agent: 'a',
      ...terminal,
      cwd: '/',
      command: ['sh', '-c', script],
    });
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: owner } });
    await client.terminals.signal({ terminal, signal: Signal.INT });
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'got it' } });
    expect((await stat(join(stateDir, 'home'))).uid).toBe(SERVICE_UID);
    expect(await first.end()).toBe(0);

    const second = await clientOf(await startServer());
    const { terminal: found } = await second.terminals.getTerminal({ terminal });
    expect(found).toMatchObject({ state: TerminalState.RUNNING, instance: 1 });
    const ended = await second.terminals.kill({ terminal });
    expect(ended.survivors ?? []).toEqual([]);
    expect((await watchAll(second, { terminal })).output.toString()).toContain('got it');
    await second.terminals.startTerminal({ terminal });
    expect(await supervisor.end()).toBe(0);
    await expect(access(join(stateDir, 'supervisor.pid'))).rejects.toThrow('ENOENT');
    await expect(access(join(stateDir, 'supervisor.log'))).rejects.toThrow('ENOENT');
  }, 90_000);
});
