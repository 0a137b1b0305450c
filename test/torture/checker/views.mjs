// What each client was given, against what the log holds.
import { createHash } from 'node:crypto';
import { hashOf, isLost } from './log.mjs';

/** ExitReason of the contract, by its number. */
const LOST = 3;

export function checkViews(lines, terminals) {
  const problems = [];
  let compared = 0;
  const hashes = new Map();
  for (const { view, uid, way } of lines('view')) {
    const complain = (what) => problems.push(`${way} view ${view} of ${uid}: ${what}`);
    const terminal = terminals.get(uid);
    const given = of(lines, view);
    if (!terminal) {
      if (given.length > 0) complain('its terminal is not on disk');
      continue;
    }
    let last;
    for (const event of given) {
      if (event.t === 'from') {
        if (event.epoch !== terminal.meta.log_epoch) complain(`epoch ${event.epoch}`);
        continue;
      }
      if (last !== undefined && event.seq !== last + 1) complain(`seq ${event.seq} after ${last}`);
      if (last === undefined && !['live', 'tail'].includes(way) && event.seq !== 1) {
        if (way !== 'successor') complain(`begins with seq ${event.seq}`);
      }
      last = event.seq;
      compared += 1;
      const logged = terminal.events[event.seq - 1];
      const problem = logged ? difference(event, logged, hashes, uid) : 'is not in the log';
      if (problem) complain(`seq ${event.seq} ${problem}`);
    }
  }
  for (const { uid, events, hash, view } of lines('whole')) {
    const terminal = terminals.get(uid);
    const digest = createHash('sha256');
    for (const { bytes } of terminal?.events ?? []) if (bytes) digest.update(bytes);
    if (events !== terminal?.events.length || hash !== digest.digest('hex')) {
      problems.push(`${view}: history as read is not the log (${events} events)`);
    }
  }
  return { problems, compared };
}

const grouped = new WeakMap();

/** Lines of one view in their order. */
function of(lines, view) {
  if (!grouped.has(lines)) {
    const groups = new Map();
    for (const kind of ['from', 'o', 'exited']) {
      for (const line of lines(kind)) {
        if (!groups.has(line.view)) groups.set(line.view, []);
        groups.get(line.view).push(line);
      }
    }
    for (const group of groups.values()) group.sort((a, b) => a.line - b.line);
    grouped.set(lines, groups);
  }
  return grouped.get(lines).get(view) ?? [];
}

function difference(event, logged, hashes, uid) {
  if (event.t === 'o') {
    if (logged.type !== 'pty.output') return `is ${logged.type} in the log`;
    const key = `${uid}/${event.seq}`;
    if (!hashes.has(key)) hashes.set(key, hashOf(logged.bytes));
    return event.hash === hashes.get(key) && event.len === logged.bytes.length
      ? undefined
      : `had ${event.len} other bytes than the ${logged.bytes.length} in the log`;
  }
  if (logged.type !== 'process.exit') return `is ${logged.type} in the log`;
  const lost = (event.reason === LOST) === isLost(logged);
  const same =
    event.instance === logged.instance &&
    event.exitCode === logged.exit_code &&
    event.signal === (logged.signal ?? '');
  return same && lost ? undefined : `is another end than in the log: ${JSON.stringify(event)}`;
}
