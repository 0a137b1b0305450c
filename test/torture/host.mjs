// The server and its detached supervisor as processes, on one state directory and one port.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { appendFileSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { makeDevelopmentCertificates } from '../../dist/app/certificates.js';
import { generateIssuerKey } from '../../dist/auth/mint.js';

const CTX = new URL('../../dist/cli/main.js', import.meta.url).pathname;
const ISSUER = 'https://issuer.example';
const AUDIENCE = 'https://torture.example';

/** Milliseconds in which a server answers: it may have leftovers of a killed supervisor to end first. */
const READY_MS = 240_000;
/** Milliseconds in which a server ends after SIGTERM: its drain takes 5 s at most. */
const END_MS = 60_000;

export class Host {
  #server;
  #log;

  /** `owner` is another user than this process's only where that is root: each runs as itself then. */
  static async prepare(dir, { sealBytes, owner }) {
    const host = ownLoopback();
    const { ca, server } = makeDevelopmentCertificates({
      hosts: [host],
      clientName: 'c',
      days: 2,
    });
    const { privateJwk, jwks } = await generateIssuerKey();
    const files = {
      'ca.pem': ca,
      'server.pem': server.cert,
      'server.key': server.key,
      'issuer.jwk': JSON.stringify(privateJwk),
      'jwks.json': JSON.stringify(jwks),
    };
    for (const [name, text] of Object.entries(files)) {
      writeFileSync(join(dir, name), text, { mode: 0o600 });
    }
    const address = `${host}:${await freePort(host)}`;
    const settings = {
      state_dir: join(dir, 'state'),
      listen: address,
      audience: AUDIENCE,
      tls: { cert: 'server.pem', key: 'server.key' },
      issuers: [{ issuer: ISSUER, jwks_file: 'jwks.json' }],
      run_as: { mode: owner === String(process.getuid()) ? 'shared-uid' : 'by-uid' },
      log: { level: 'info', seal_bytes: sealBytes },
    };
    // JSON is YAML.
    writeFileSync(join(dir, 'config.yaml'), JSON.stringify(settings, null, 2));
    return new Host(dir, address, owner);
  }

  constructor(dir, address, owner) {
    this.dir = dir;
    this.address = address;
    this.stateDir = join(dir, 'state');
    this.issuer = ISSUER;
    this.audience = AUDIENCE;
    this.owner = owner;
    this.#log = join(dir, 'server.log');
  }

  get serverPid() {
    return this.#server?.pid;
  }

  /** Its pid, if one lives: the file stays behind when it is killed. */
  get supervisorPid() {
    try {
      const pid = Number(readFileSync(join(this.stateDir, 'supervisor.pid'), 'utf8'));
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('supervise') ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  /** `ready` resolves when calls are answered, with false when the server was ended before. */
  launch() {
    const args = [CTX, 'serve', '--config', join(this.dir, 'config.yaml')];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#server = child;
    let said = '';
    const ready = new Promise((resolve, reject) => {
      child.stderr.on('data', (chunk) => {
        appendFileSync(this.#log, chunk);
        said += said.length < 100_000 ? chunk : '';
        if (said.includes('serving on')) resolve(true);
      });
      child.once('exit', (code) => {
        if (code === null) resolve(false);
        else
          reject(new Error(`the server ended with ${code} before it was ready: ${lastLine(said)}`));
      });
      setTimeout(
        () => reject(new Error(`no server after ${READY_MS} ms; see ${this.#log}`)),
        READY_MS,
      ).unref();
    });
    ready.catch(() => {});
    return { ready };
  }

  /** Ends the server; resolves with its exit code or signal. */
  async endServer(signal) {
    const child = this.#server;
    if (child.exitCode !== null || child.signalCode !== null)
      return child.exitCode ?? child.signalCode;
    const ended = once(child, 'exit', { signal: AbortSignal.timeout(END_MS) });
    child.kill(signal);
    const [code, by] = await ended;
    return code ?? by;
  }

  signalServer(signal) {
    this.#server.kill(signal);
  }

  /** False when there is none, or no longer. */
  signalSupervisor(signal) {
    const pid = this.supervisorPid;
    if (pid === undefined) return false;
    try {
      process.kill(pid, signal);
      return true;
    } catch (error) {
      if (error.code === 'ESRCH') return false;
      throw error;
    }
  }

  ctx(...args) {
    return new Promise((resolve) => {
      const child = spawn(process.execPath, [CTX, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
      let said = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.on('data', (chunk) => {
          said += chunk;
        });
      }
      child.once('close', (code) => resolve({ code, said }));
    });
  }
}

function lastLine(text) {
  return text.trimEnd().split('\n').at(-1);
}

/** Files that a process has open, by the kernel's names. */
export function openFiles(pid) {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

/** Processes that carry this text in their environment. */
export function processesWith(text) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'latin1').includes(text);
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** The value once it passes, looked for until the time is over; then the last one. */
export async function eventually(look, passes, withinMs) {
  const begun = performance.now();
  for (;;) {
    const value = look();
    if (passes(value) || performance.now() - begun > withinMs) return value;
    await delay(100);
  }
}

/**
 * A loopback address that nothing else on this host uses (all of 127.0.0.0/8 is loopback): while the
 * server is down no other program is given its port, to listen on or to connect from, nor is a client
 * that tries to connect, and would then be connected to itself.
 */
function ownLoopback() {
  const [a, b, c] = randomBytes(3);
  return `127.${1 + (a % 254)}.${b}.${1 + (c % 254)}`;
}

function freePort(host) {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, host, () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}
