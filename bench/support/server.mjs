// `ctx serve` as a process of its own, and the one client that measures it.
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { prepareDev } from '../../dist/app/dev.js';
import { mintToken } from '../../dist/auth/mint.js';
import { end, lineOf, Skip } from './bench.mjs';
import { ownBytes } from './processMemory.mjs';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
export const CTX = path('../../dist/cli/main.js');
const PLAIN_TCP = path('./preload/plainTcp.mjs');
const MEMORY = new URL('./preload/memory.mjs', import.meta.url);
const AUDIENCE = 'urn:grantty:bench';
const ISSUER = 'urn:grantty:bench';
const ALL = ['create', 'read', 'write', 'resize', 'signal', 'stop', 'kill'];

/** Milliseconds in which a supervisor ends, a thousand terminals with it. */
const SUPERVISOR_END_MS = 120_000;

/** Whom terminals belong to and, in the usual mode, run as. */
export const OWNER = String(userInfo().uid);

/**
 * Starts a server in `stateDir`, which may hold terminals already and is removed at the end.
 * @param options.plain without TLS, which no setting of the program allows
 * @param options.byUid terminals of many owners, each run as its own user; needs root
 * @param options.memory `memory()` and `processes()` of the answer work
 * @param options.nodeFlags further flags for Node.js
 */
export async function startServer(bench, options = {}) {
  const stateDir = options.stateDir ?? join(bench.dir, `state-${randomUUID()}`);
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const files = await prepareDev(stateDir, { host: '127.0.0.1', port: 0 });
  const memoryFile = join(bench.dir, `memory-${randomUUID()}`);
  const config = {
    state_dir: stateDir,
    listen: '127.0.0.1:0',
    audience: AUDIENCE,
    tls: { cert: files.serverCert, key: files.serverKey },
    issuers: [{ issuer: ISSUER, jwks_file: files.jwks }],
    run_as: { mode: options.byUid ? 'by-uid' : 'shared-uid' },
    log: { level: 'warn' },
    limits: { streams_per_principal: 65_536 },
  };
  // JSON is YAML.
  const configFile = join(stateDir, 'bench.yaml');
  await writeFile(configFile, JSON.stringify(config));
  const flags = [...(options.nodeFlags ?? [])];
  if (options.plain) flags.push('--import', PLAIN_TCP);
  if (options.memory) flags.push('--expose-gc', '--import', `${MEMORY}?file=${memoryFile}`);
  const child = bench.start(process.execPath, [...flags, CTX, 'serve', '--config', configFile], {
    stdio: ['ignore', 'ignore', 'pipe'],
    // In a session of its own, as a service is: the kernel may share the processor out by session.
    detached: true,
  });
  const line = await lineOf(child, child.stderr, (text) => text.startsWith('ctx: serving on'));
  const address = /serving on (\S+?);?( |$)/.exec(line)[1];
  const key = JSON.parse(await readFile(files.issuerKey, 'utf8'));

  const server = {
    stateDir,
    address,
    ca: files.ca,
    cert: files.serverCert,
    key: files.serverKey,
    child,
    plain: options.plain ?? false,
    token: () => writeToken(bench, key),
    pids: async () => [child.pid, ...(await supervisorPid(stateDir))],
    memory: async () => memoryOf(await server.pids(), memoryFile),
    processes: async () => processesOf(await server.pids(), memoryFile),
    end: (signal) => end(child, signal),
  };
  server.tokenFile = await server.token();
  bench.onEnd(async () => {
    await end(child);
    for (const pid of await supervisorPid(stateDir)) await endProcess(pid);
    await rm(stateDir, { recursive: true, force: true });
  });
  return server;
}

/**
 * Starts a program of this directory that takes a server's place before the same client. It prints
 * its address, and is in a session of its own like a server.
 */
export async function startInPlaceOf(bench, server, program, ...args) {
  const child = bench.start(process.execPath, [path(`./${program}`), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const address = await lineOf(child, child.stdout, () => true);
  return { ...server, address, pids: async () => [child.pid] };
}

/** Terminals held by two bare processes: see bareTerminals.mjs. */
export function startBareTerminals(bench, server) {
  const socket = join(bench.dir, `bare-${randomUUID()}`);
  const tls = server.plain ? [] : [server.cert, server.key];
  return startInPlaceOf(bench, server, 'bareTerminals.mjs', socket, ...tls);
}

/** A file with a new token of all rights over all owners. */
async function writeToken(bench, key) {
  const grant = (owner, id) => ({
    type: 'urn:grantty:terminal:v1',
    id,
    actions: ALL.map((action) => `terminal.${action}`),
    resource: { owner, agent: '*', session: '*', terminal: '*' },
  });
  const token = await mintToken({
    key,
    issuer: ISSUER,
    audience: AUDIENCE,
    subject: 'bench',
    ttl: 3600,
    // `*` does not reach the owner 0.
    grants: [grant(OWNER, 'own'), grant('*', 'all')],
    now: Date.now(),
  });
  const file = join(bench.dir, `token-${randomUUID()}`);
  await writeFile(file, token, { mode: 0o600 });
  return file;
}

/** Of a supervisor that is a process of its own. */
async function supervisorPid(stateDir) {
  const file = join(stateDir, 'supervisor.pid');
  if (!existsSync(file)) return [];
  const pid = Number((await readFile(file, 'utf8')).trim());
  return existsSync(`/proc/${pid}`) ? [pid] : [];
}

/** Of a process that is no child of this one: it is a child of one that was. */
async function endProcess(pid) {
  process.kill(pid, 'SIGTERM');
  for (let waited = 0; existsSync(`/proc/${pid}`); waited += 50) {
    if (waited > SUPERVISOR_END_MS) throw new Error(`the supervisor ${pid} does not end`);
    await setTimeout(50);
  }
}

/** Bytes resident in the processes together, and bytes alive in their heaps and buffers. */
async function memoryOf(pids, file) {
  const memory = { resident: 0, alive: 0 };
  for (const pid of pids) {
    const { heapUsed, external } = await collected(pid, file);
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    memory.resident += Number(/VmRSS:\s+(\d+)/.exec(status)[1]) * 1024;
    memory.alive += heapUsed + external;
  }
  return memory;
}

/** Of the server and of the supervisor apart: bytes of memory, and bytes alive in heap and buffers. */
async function processesOf([server, supervisor], file) {
  const one = async (pid) => {
    const { heapUsed, external } = await collected(pid, file);
    return { held: await ownBytes(pid), alive: heapUsed + external };
  };
  return { server: await one(server), supervisor: await one(supervisor) };
}

/** What is alive in a process after it has collected garbage. */
async function collected(pid, file) {
  const told = `${file}-${pid}`;
  await rm(told, { force: true });
  process.kill(pid, 'SIGWINCH');
  for (let waited = 0; !existsSync(told); waited += 50) {
    if (waited > 20_000) throw new Error(`process ${pid} did not tell its memory`);
    await setTimeout(50);
  }
  return JSON.parse(await readFile(told, 'utf8'));
}

/** The arguments by which the client reaches a server. */
export function reach(server) {
  return [
    ...['-address', server.address, '-token-file', server.tokenFile, '-owner', OWNER],
    ...(server.plain ? [] : ['-ca', server.ca]),
  ];
}

let built;

/** Path of the client, built once. @throws Skip where it cannot be */
export function client(bench) {
  built ??= build(bench);
  return built;
}

async function build(bench) {
  const binary = join(bench.dir, 'client');
  try {
    await bench.run('go', ['build', '-o', binary, '.'], { cwd: path('../go') });
    return binary;
  } catch (error) {
    const why = error.code === 'ENOENT' ? 'go is not installed' : `go build: ${error.message}`;
    throw new Skip(`${why}; the client of the bench is written in Go`);
  }
}

let names = 0;

/** An id that no terminal has had. */
export function newId() {
  names += 1;
  return `t${names}`;
}

/** Has the client measure something at the server. */
export async function measure(bench, server, mode, flags = {}, command = []) {
  const args = Object.entries(flags).flatMap(([name, value]) => [`-${name}`, String(value)]);
  return bench.json(await client(bench), [mode, ...reach(server), ...args, ...command]);
}
