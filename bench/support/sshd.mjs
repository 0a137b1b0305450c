// OpenSSH on loopback: a server of our own, with keys and a configuration that live as long as it does.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { chmod, copyFile, mkdtemp, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { Skip } from './bench.mjs';

const SSHD = '/usr/sbin/sshd';
/** Where sshd, run as root, locks its unprivileged part in. */
const PRIVSEP_DIR = '/run/sshd';

/** Resolves with the argv that runs a command on a terminal there. @throws Skip where it is missing */
export async function startSshd(bench) {
  if (!existsSync(SSHD)) throw new Skip('OpenSSH is not installed: apt-get install openssh-server');
  const { uid, username } = userInfo();
  if (uid === 0 && !existsSync(PRIVSEP_DIR)) {
    console.log(`(made ${PRIVSEP_DIR}, which sshd run by root needs)`);
    mkdirSync(PRIVSEP_DIR, { mode: 0o755 });
  }
  const dir = await mkdtemp(join(bench.dir, 'ssh-'));
  const file = (name) => join(dir, name);
  for (const name of ['host', 'user']) {
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file(name)]);
  }
  await copyFile(`${file('user')}.pub`, file('authorized'));
  await chmod(file('authorized'), 0o600);
  const port = await freePort();
  const config = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${file('host')}`,
    `AuthorizedKeysFile ${file('authorized')}`,
    'StrictModes no',
    'UsePAM no',
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin prohibit-password',
    'PrintMotd no',
    'PrintLastLog no',
    'PidFile none',
    'LogLevel ERROR',
    'MaxStartups 100',
    // bash, run by sshd, reads the user's start-up file unless it is told that it is no first shell:
    // what somebody has in there (a version manager, say) is not OpenSSH.
    'SetEnv SHLVL=2',
  ];
  await writeFile(file('config'), `${config.join('\n')}\n`);
  const child = bench.start(SSHD, ['-D', '-e', '-f', file('config')], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await untilListening(child, port);
  const options = {
    IdentitiesOnly: 'yes',
    StrictHostKeyChecking: 'no',
    UserKnownHostsFile: '/dev/null',
    LogLevel: 'ERROR',
  };
  const argv = [
    ...['ssh', '-tt', '-F', 'none', '-i', file('user'), '-p', String(port)],
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    `${username}@127.0.0.1`,
  ];
  return (command) => [...argv, command];
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilListening(child, port) {
  for (let tries = 0; tries < 100; tries += 1) {
    if (child.exitCode !== null) throw new Skip(`sshd does not start: ${child.said()}`);
    const open = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
      socket.once('connect', () => socket.destroy());
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Skip('sshd does not listen');
}
