// Keeps a copy of the set of terminals by WatchTerminals; at the end it must be what the server lists.
import { setTimeout as delay } from 'node:timers/promises';
import { describe, isTransient } from '../world.mjs';

/** Milliseconds in which the last changes arrive. */
const SETTLE_MS = 20_000;

export async function mirror(world) {
  const { client, record, stopping } = world;
  const held = new Map();
  const leave = new AbortController();
  const following = follow(client, held, leave.signal).catch((failure) => {
    record({ t: 'fault', op: 'mirror', failure: describe(failure) });
  });
  while (!stopping.aborted) await world.pause(1_000, 1_000);
  const begun = performance.now();
  let different = await difference(world, held);
  while (different.length > 0 && performance.now() - begun < SETTLE_MS) {
    await delay(200);
    different = await difference(world, held);
  }
  record({ t: 'mirror', terminals: held.size, different });
  leave.abort();
  await following;
}

/** Once it is open the client resumes it; what fails before is tried again here. */
async function follow(client, held, signal) {
  try {
    await followOpened(client, held, signal);
  } catch (failure) {
    if (signal.aborted) return;
    if (!isTransient(failure)) throw failure;
    await delay(500);
    await follow(client, held, signal);
  }
}

async function followOpened(client, held, signal) {
  let snapshot = new Set();
  for await (const { case: kind, value } of client.watchTerminals({}, { signal })) {
    if (kind === 'snapshot' || kind === 'changed') {
      held.set(value.terminal.uid, value.terminal);
      if (kind === 'snapshot') snapshot.add(value.terminal.uid);
    } else if (kind === 'removed') held.delete(value.uid);
    else if (kind === 'snapshotEnd') {
      if (!value.resumed) for (const uid of held.keys()) if (!snapshot.has(uid)) held.delete(uid);
      snapshot = new Set();
    }
  }
}

async function difference({ client, settle }, held) {
  const { terminals } = await settle('list', (options) =>
    client.terminals.listTerminals({ pageSize: 1000 }, options),
  );
  const listed = new Map((terminals ?? []).map((one) => [one.uid, one]));
  const uids = new Set([...held.keys(), ...listed.keys()]);
  return [...uids].filter((uid) => {
    const [a, b] = [held.get(uid), listed.get(uid)];
    return a?.state !== b?.state || a?.instance !== b?.instance || a?.title !== b?.title;
  });
}
