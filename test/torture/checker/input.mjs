// What was typed and signalled, against what the programs echoed.
import { instancesOf } from './outputs.mjs';

export function checkInput(lines, terminals) {
  const problems = [];
  const totals = { frames: 0, signals: 0, settled: 0 };
  const settled = new Set(lines('settled').map(keyOf));
  const typed = typedFrames(lines);
  const [sent, answered, counted] = ['signal', 'signalled', 'counted'].map((kind) =>
    countBy(lines(kind)),
  );
  for (const { uid, meta, ...terminal } of withUid(terminals)) {
    for (const { instance, output } of instancesOf(terminal)) {
      const key = `${uid}/${instance}`;
      const complain = (what) => problems.push(`${meta.id} instance ${instance}: ${what}`);
      const frames = typed.get(key);
      if (frames) {
        const whole = settled.has(key);
        totals.settled += whole ? 1 : 0;
        totals.frames += checkEcho(output.toString('latin1'), frames, whole, complain);
      }
      if (sent.has(key)) {
        const times = output.toString('latin1').match(/^usr1 \d+$/gm)?.length ?? 0;
        totals.signals += times;
        if (times > sent.get(key)) complain(`${times} signals arrived of ${sent.get(key)} sent`);
        const least = counted.has(key) ? answered.get(key) : 0;
        if (times < least) complain(`${times} signals arrived of ${least} that were answered`);
      }
    }
  }
  return { problems, totals };
}

function* withUid(terminals) {
  for (const [uid, terminal] of terminals) yield { uid, ...terminal };
}

function keyOf({ uid, instance }) {
  return `${uid}/${instance}`;
}

function countBy(lines) {
  const counts = new Map();
  for (const { n, ...line } of lines)
    counts.set(keyOf(line), Math.max(n, counts.get(keyOf(line)) ?? 0));
  return counts;
}

/** By instance, then by lane and number: length, and how many bytes were taken; null: not known. */
function typedFrames(lines) {
  const typed = new Map();
  for (const line of lines('frame')) {
    if (!typed.has(keyOf(line))) typed.set(keyOf(line), new Map());
    typed.get(keyOf(line)).set(`${line.lane}.${line.k}`, { len: line.len, taken: null });
  }
  for (const line of lines('taken')) {
    const frame = typed.get(keyOf(line))?.get(`${line.lane}.${line.k}`);
    // Of two equal requests that ran at once, what either was told.
    if (frame) frame.taken = Math.max(line.taken ?? -1, frame.taken ?? -1);
    if (frame?.taken === -1) frame.taken = null;
  }
  return typed;
}

/**
 * Each frame at most once, in the order of its lane, whole unless only a part was taken; where the
 * instance is settled, each one that was taken exactly once and just as far. Otherwise the echo may
 * end early, but has no hole.
 */
function checkEcho(text, frames, isSettled, complain) {
  const echo = text.replace(/^ready/, '');
  const seen = new Map();
  const latest = new Map();
  const tokens = echo.match(/\[[^[\]]*\]?|[^[]+/g) ?? [];
  for (const [at, token] of tokens.entries()) {
    const [, name, lane, number] = /^\[((\w+)\.(\d+)):/.exec(token) ?? [];
    const isLast = at === tokens.length - 1;
    const frame = frames.get(name);
    if (!frame) {
      // Too little of it was taken, or echoed, to tell its name.
      const isStub = /^\[[\w.]*$/.test(token);
      if (!isStub) complain(`an echo that nobody typed: ${token.slice(0, 60)}`);
      continue;
    }
    if (seen.has(name)) complain(`frame ${name} arrived twice`);
    if (Number(number) <= (latest.get(lane) ?? 0)) complain(`frame ${name} arrived late`);
    latest.set(lane, Number(number));
    seen.set(name, token.length);
    const cutAtEnd = isLast && !isSettled;
    const expected = frame.taken ?? token.length;
    if (token.length !== expected && !cutAtEnd) {
      complain(`frame ${name}: ${token.length} bytes arrived, ${frame.taken} were taken`);
    }
    if (token.length < frame.len && frame.taken === frame.len && !cutAtEnd) {
      complain(`frame ${name} was broken up`);
    }
  }
  for (const [name, { taken }] of frames) {
    const [lane, number] = name.split('.');
    const due = isSettled || Number(number) < (latest.get(lane) ?? 0);
    // Less than its name may be a stub that could not be told.
    if (due && taken > name.length + 1 && !seen.has(name)) complain(`frame ${name} never arrived`);
  }
  return seen.size;
}
