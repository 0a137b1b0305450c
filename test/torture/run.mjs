// The torture run: clients work while processes are killed under them; then everything is checked.
//
//   node test/torture/run.mjs [--seconds N] [--seed S] [--keep]
//
// The seed decides what is done and when; the kernel decides the rest, so that a seed repeats the
// choices of a run and not its every interleaving. Exit code 1, the directory and the seed on failure.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { torment } from './chaos.mjs';
import { check } from './checker/check.mjs';
import { Clients } from './clients.mjs';
import { deadline } from './deadline.mjs';
import { Host } from './host.mjs';
import { Random } from './random.mjs';
import { lookAtRest } from './rest.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: process.env.TORTURE_SECONDS ?? '600' },
    seed: { type: 'string', default: process.env.TORTURE_SEED ?? '' },
    keep: { type: 'boolean', default: false },
  },
});
const seconds = Number(values.seconds);
const seed = values.seed || String(Date.now() % 1_000_000_000);
if (!(seconds >= 1 && seconds <= 86_400)) {
  process.stderr.write('torture: --seconds must be 1 to 86400\n');
  process.exit(2);
}

const roles = {
  driver: ['driver1', 'driver2'],
  watcher: ['watcher1', 'watcher2', 'watcher3'],
  typist: ['typist'],
  signaller: ['signaller'],
  mirror: ['mirror'],
};

const begun = performance.now();
const say = (line) => {
  const at = ((performance.now() - begun) / 1000).toFixed(1).padStart(6);
  process.stdout.write(`${at} s  ${line}\n`);
};

const dir = mkdtempSync(join(tmpdir(), 'grantty-torture-'));
say(`seed ${seed}, ${seconds} s, in ${dir}`);
const random = new Random(seed);
const [records, archive] = ['records', 'archive'].map((name) => join(dir, name));
for (const place of [records, archive]) mkdirSync(place);
// Names that no other run on this host has.
const prefix = `x${process.pid.toString(36)}${Date.now().toString(36)}`;
const owner = process.getuid() === 0 && random.chance(0.5) ? '1000' : String(process.getuid());
say(`terminals of the owner ${owner}`);
const host = await Host.prepare(dir, { sealBytes: 1024 * 1024, owner });
const clients = new Clients(host, { seed, prefix, records, archive });
const problems = [];
const broken = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, () => broken.abort(new Error(`ended by ${signal}`)));
}

try {
  await Promise.race([play(), whenBroken()]);
} catch (error) {
  problems.push(`the run broke off: ${error.stack}`);
} finally {
  clients.killAll();
  host.signalSupervisor('SIGCONT');
  await host.endServer('SIGKILL').catch(() => {});
  await host.ctx('supervise', '--stop', '--state-dir', host.stateDir);
}

for (const problem of problems.slice(0, 40)) say(`PROBLEM ${problem.slice(0, 1_000)}`);
if (problems.length === 0) {
  say('no problem');
  if (!values.keep) rmSync(dir, { recursive: true });
} else {
  say(
    `${problems.length} problems; TORTURE_SEED=${seed} TORTURE_SECONDS=${seconds}; left in ${dir}`,
  );
  process.exitCode = 1;
}

async function play() {
  await host.launch().ready;
  for (const [role, names] of Object.entries(roles)) {
    for (const name of names) clients.start(role, name);
  }
  const chaos = random.fork('chaos');
  const dealt = await torment(
    { host, clients, random: chaos, problems, note: say, written },
    deadline(broken.signal, seconds * 1000),
  );
  say(`blows: ${list(dealt)}`);
  await clients.end('driver', 'typist', 'signaller');
  await clients.played('ender');
  await clients.end('watcher', 'mirror');
  await clients.played('reader');
  say('all clients have ended');
  problems.push(...clients.problems, ...(await lookAtRest(host, prefix)));
  const { problems: found, totals } = check({ dir, stateDir: host.stateDir, records, archive });
  problems.push(...found);
  say(`checked: ${list(totals)}`);
  writeFileSync(join(dir, 'problems.json'), JSON.stringify(problems, null, 2));
}

/** Bytes of all records so far. */
function written() {
  return readdirSync(records).reduce((sum, file) => sum + statSync(join(records, file)).size, 0);
}

function whenBroken() {
  return new Promise((_, reject) => {
    broken.signal.addEventListener('abort', () => reject(broken.signal.reason), { once: true });
  });
}

function list(counts) {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
