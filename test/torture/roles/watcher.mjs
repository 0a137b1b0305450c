// Watches terminals in every way there is, and writes down each event that it was given.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { deadline } from '../deadline.mjs';
import { describe, isRefusal, isTransient } from '../world.mjs';

const ways = [followed, followed, slowly, inHops, inHops, inHops, live, tail, history, forEver];

export async function watch(world) {
  const { random, stopping, pause } = world;
  const left = leftBehind(world.config.earlier);
  if (left) await hop(world, newView(world, left, 'successor'), left.after);
  await Promise.all(
    [1, 2, 3].map(async () => {
      while (!stopping.aborted) {
        const terminal = await anyTerminal(world);
        if (terminal) await random.pick(ways)(world, terminal);
        await pause(50, 500);
      }
    }),
  );
}

let views = 0;

/** One unbroken look at a terminal, as far as the checker is concerned. */
function newView(world, { id, uid }, way) {
  views += 1;
  const view = `${world.config.record}#${views}`;
  world.record({ t: 'view', view, id, uid, way });
  return { view, id, uid };
}

/** Where an earlier process of this name was when it vanished. */
function leftBehind(file) {
  if (!file || !existsSync(file)) return undefined;
  const open = new Map();
  for (const text of readFileSync(file, 'utf8').split('\n').slice(0, -1)) {
    const line = JSON.parse(text);
    if (line.t === 'view') open.set(line.view, { id: line.id, uid: line.uid });
    // Of one that goes on over ends and starts, what comes after an end is left to others.
    if (line.t === 'from' && open.has(line.view)) open.get(line.view).epoch = line.epoch;
    if (line.t === 'o' && open.has(line.view)) open.get(line.view).seq = line.seq;
    if (line.t === 'exited' || line.t === 'end') open.delete(line.view);
  }
  const [found] = [...open.values()].filter(({ seq }) => seq !== undefined);
  return found && { ...found, after: { afterSeq: BigInt(found.seq), logEpoch: found.epoch } };
}

async function anyTerminal({ client, settle, random, config }) {
  const { terminals } = await settle('list', (options) =>
    client.terminals.listTerminals({ pageSize: 1000 }, options),
  );
  if (!terminals?.length) return undefined;
  const living = terminals.filter(({ pid }) => pid !== undefined);
  const found = random.pick(living.length > 0 && random.chance(0.8) ? living : terminals);
  return { id: found.ref.id, uid: found.uid, owner: config.owner };
}

/** Writes one event down before anything else is done with it. */
function note({ record }, view, event) {
  const { value } = event;
  if (event.case === 'started') {
    const { logEpoch, firstSeq, nextSeq, terminal } = value;
    const seqs = { firstSeq: Number(firstSeq), nextSeq: Number(nextSeq) };
    record({ t: 'from', view, uid: terminal.uid, epoch: logEpoch, ...seqs });
  } else if (event.case === 'output') {
    const hash = createHash('sha1').update(value.data).digest('hex');
    record({ t: 'o', view, seq: Number(value.seq), len: value.data.length, hash });
  } else if (event.case === 'exited') {
    const { exitCode, signal, reason } = value.status;
    const how = { exitCode, signal, reason };
    record({ t: 'exited', view, seq: Number(value.seq), instance: value.instance, ...how });
  } else if (event.case === 'closing') {
    record({ t: 'closing', view, reason: value.reason, lastSeq: Number(value.lastSeq) });
  }
}

/** Consumes a stream; says in the record how it ended. */
async function consume(world, view, stream, signal, between) {
  const { record } = world;
  try {
    for await (const event of stream) {
      note(world, view, event.event ?? event);
      if (between) await between(event.event ?? event);
    }
    record({ t: 'end', view, how: 'ended' });
  } catch (failure) {
    if (signal.aborted) record({ t: 'end', view, how: 'left' });
    else if (isTransient(failure) || isRefusal(failure)) {
      record({ t: 'end', view, how: failure.reason ?? failure.code });
    } else record({ t: 'fault', op: 'watch', view, failure: describe(failure) });
  }
}

function limited({ stopping, random }, least, greatest) {
  return deadline(stopping, random.int(least, greatest));
}

async function followed(world, { id, uid }, request = {}, between = undefined, way = 'followed') {
  const signal = limited(world, 2_000, 15_000);
  const { view } = newView(world, { id, uid }, way);
  const stream = world.client.watch({ terminal: { id }, ...request }, { signal });
  await consume(world, view, stream, signal, between);
}

function slowly(world, terminal) {
  const between = () => delay(world.random.int(0, 80));
  return followed(world, terminal, {}, between, 'slowly');
}

function live(world, terminal) {
  return followed(world, terminal, { start: { case: 'live', value: true } }, undefined, 'live');
}

function tail(world, terminal) {
  const start = { case: 'tailBytes', value: BigInt(world.random.int(1, 300_000)) };
  return followed(world, terminal, { start }, undefined, 'tail');
}

function history(world, terminal) {
  return followed(world, terminal, { follow: false }, undefined, 'history');
}

function forEver(world, terminal) {
  // UNTIL_NEVER: over ends and new starts.
  return followed(world, terminal, { until: 2 }, undefined, 'forEver');
}

function inHops(world, terminal) {
  return hop(world, newView(world, terminal, 'inHops'), { afterSeq: 0n });
}

/** By bare calls: leaves after some events, comes back after the last seq, as a client would by hand. */
async function hop(world, { view, id, uid }, from) {
  const { random, stopping, record, client } = world;
  const signal = limited(world, 4_000, 20_000);
  let after = from;
  while (!signal.aborted) {
    let left = random.int(1, 60);
    const start = { case: 'after', value: after };
    try {
      const stream = client.terminals.watch({ terminal: { id }, start }, { signal });
      for await (const { event } of stream) {
        if (event.case === 'started' && event.value.terminal.uid !== uid) return;
        note(world, view, event);
        if (event.case === 'started') after = { ...after, logEpoch: event.value.logEpoch };
        if (event.case === 'output' || event.case === 'exited') {
          after = { ...after, afterSeq: event.value.seq };
          left -= 1;
          if (left === 0) break;
        }
      }
      if (left > 0) return record({ t: 'end', view, how: 'ended' });
    } catch (failure) {
      if (signal.aborted) break;
      if (isRefusal(failure)) return record({ t: 'end', view, how: failure.reason });
      // A bare call is not given another token: it comes back with a new one.
      if (!isTransient(failure) && failure?.reason !== 'TOKEN_EXPIRED') {
        return record({ t: 'fault', op: 'hop', view, failure: describe(failure) });
      }
    }
    await delay(random.int(10, 1_000), undefined, { signal: stopping }).catch(() => {});
  }
  record({ t: 'end', view, how: 'left' });
}
