// What befalls the processes of a run: killed, frozen, replaced, at moments that the seed decides.
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds between two blows, at the least. */
const CALM_MS = [1_000, 4_000];
/** Bytes that clients write down between two blows, so that a busy host too gets some work done … */
const CALM_BYTES = [2_000, 40_000];
/** … in so many milliseconds at the most. */
const LONGEST_CALM_MS = 30_000;

const blows = {
  async serverKilled({ host }) {
    await host.endServer('SIGKILL');
  },
  async serverReplaced({ host, problems }) {
    const code = await host.endServer('SIGTERM');
    if (code !== 0) problems.push(`a server that was told to end did so with ${code}`);
  },
  async supervisorKilled({ host }) {
    host.signalSupervisor('SIGKILL');
  },
  async bothKilled({ host, random }) {
    if (random.chance(0.5)) {
      host.signalSupervisor('SIGKILL');
      await host.endServer('SIGKILL');
    } else {
      await host.endServer('SIGKILL');
      await delay(random.int(0, 500));
      host.signalSupervisor('SIGKILL');
    }
  },
  async serverKilledAtItsStart(scene) {
    const { host, random } = scene;
    await host.endServer('SIGKILL');
    host.launch();
    await delay(random.int(0, 1_500));
    await host.endServer('SIGKILL');
  },
  async supervisorKilledAtItsStart({ host, random }) {
    if (!host.signalSupervisor('SIGKILL')) return;
    // The server starts another one by itself.
    await delay(random.int(300, 2_000));
    host.signalSupervisor('SIGKILL');
  },
  async supervisorFrozen({ host, random }) {
    if (!host.signalSupervisor('SIGSTOP')) return;
    await delay(random.int(200, 4_000));
    host.signalSupervisor('SIGCONT');
  },
  async serverFrozen({ host, random }) {
    host.signalServer('SIGSTOP');
    await delay(random.int(200, 4_000));
    host.signalServer('SIGCONT');
  },
  async clientFrozen({ clients, random }) {
    const watcher = random.pick(clients.watchers);
    watcher?.child.kill('SIGSTOP');
    await delay(random.int(500, 6_000));
    watcher?.child.kill('SIGCONT');
  },
  async clientVanished({ clients, random }) {
    const watcher = random.pick(clients.watchers);
    if (watcher) clients.vanish(watcher);
  },
};

/** How often each comes once all have come: the loss of a supervisor ends every terminal. */
const weights = {
  serverKilled: 5,
  serverReplaced: 4,
  supervisorKilled: 2,
  bothKilled: 2,
  serverKilledAtItsStart: 2,
  supervisorKilledAtItsStart: 1,
  supervisorFrozen: 2,
  serverFrozen: 2,
  clientFrozen: 3,
  clientVanished: 3,
};

/** Every kind once, in an order by chance, then by weight until the signal aborts; how many of each. */
export async function torment(scene, signal) {
  const { host, random, note } = scene;
  const dealt = Object.fromEntries(Object.keys(blows).map((name) => [name, 0]));
  const first = random.shuffled(Object.keys(blows));
  const lots = Object.entries(weights).flatMap(([name, weight]) => Array(weight).fill(name));
  while (!signal.aborted) {
    await calm(scene, signal);
    if (signal.aborted) break;
    const name = first.pop() ?? random.pick(lots);
    const server = host.serverPid;
    note(name);
    await blows[name](scene);
    dealt[name] += 1;
    if (!isAlive(host.serverPid) || host.serverPid !== server) await bringBack(scene);
  }
  return dealt;
}

async function calm({ random, written }, signal) {
  const due = written() + random.int(...CALM_BYTES);
  const begun = performance.now();
  await delay(random.int(...CALM_MS), undefined, { signal }).catch(() => {});
  while (!signal.aborted && written() < due && performance.now() - begun < LONGEST_CALM_MS) {
    await delay(100);
  }
}

async function bringBack({ host, random }) {
  await delay(random.int(0, 500));
  await host.launch().ready;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
