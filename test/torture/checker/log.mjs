// Reads a terminal's directory as any program could: files of JSON, nothing of the product.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Its record and its events over all parts; `problems` names what is not as the format has it.
 * `bytes` of an event is its output.
 */
export function readTerminal(dir) {
  const problems = [];
  const meta = JSON.parse(readFileSync(join(dir, 'meta.json'), 'utf8'));
  const complain = (what) => problems.push(`${meta.id}: ${what}`);
  const events = [];
  for (const { file, first } of parts(dir)) {
    const text = readFileSync(join(dir, file));
    if (first !== undefined && events.length + 1 !== first) {
      complain(`${file} comes after seq ${events.length}`);
    }
    if (text.length > 0 && text.at(-1) !== 10) complain(`${file} ends in a torn line`);
    let from = 0;
    for (let to = text.indexOf(10); to !== -1; to = text.indexOf(10, from)) {
      const event = parse(text.subarray(from, to), complain);
      from = to + 1;
      if (event === undefined) continue;
      if (event.seq !== events.length + 1) {
        complain(`seq ${event.seq} in ${file} comes after ${events.length}`);
      }
      events.push(event);
    }
  }
  checkOrder(events, meta, complain);
  for (const [name, value] of Object.entries({ state: meta.state, status: meta.state })) {
    const said = readFileSync(join(dir, name), 'utf8');
    if (said !== `${value}\n`) complain(`the file ${name} says ${said.trim()}, meta.json ${value}`);
  }
  return { dir, meta, events, problems };
}

function parts(dir) {
  const sealed = readdirSync(dir)
    .map((file) => ({ file, first: Number(/^events\.(\d+)\.jsonl$/.exec(file)?.[1]) }))
    .filter(({ first }) => first > 0)
    .sort((a, b) => a.first - b.first);
  return [...sealed, { file: 'events.jsonl' }];
}

function parse(line, complain) {
  try {
    const { seq, type, data_b64: data, instance = 1, ...rest } = JSON.parse(line.toString('utf8'));
    const event = { seq, type, instance, ...rest };
    if (type !== 'pty.output') return event;
    const bytes = Buffer.from(data, 'base64');
    if (bytes.toString('base64') !== data) complain(`seq ${seq}: base64 that is not canonical`);
    if (bytes.length === 0 || bytes.length > 65_536) complain(`seq ${seq}: ${bytes.length} bytes`);
    return { ...event, bytes };
  } catch (error) {
    complain(`a line that is no event: ${line.subarray(0, 80)} (${error.message})`);
    return undefined;
  }
}

/** Instances one after another, each with one end that is its last event; the record says the same. */
function checkOrder(events, meta, complain) {
  let instance = 0;
  let open = false;
  for (const { seq, type, instance: of } of events) {
    if (of !== instance) {
      if (of < instance) complain(`seq ${seq}: instance ${of} after ${instance}`);
      if (open) complain(`seq ${seq}: instance ${of} begins and ${instance} has no end`);
      instance = of;
      open = true;
    } else if (!open)
      complain(`seq ${seq}: a second end of instance ${of}, or output after its end`);
    if (type === 'process.exit') open = false;
    else if (type !== 'pty.output') complain(`seq ${seq}: unknown type ${type}`);
  }
  if (open) complain(`instance ${instance} has no end`);
  const ends = events.filter(({ type }) => type === 'process.exit').length;
  if (ends !== meta.instance) complain(`${ends} ends of ${meta.instance} instances`);
  const last = events.at(-1);
  const state = isLost(last) ? 'error' : 'exited';
  if (meta.state !== state) complain(`state ${meta.state}, and the last event says ${state}`);
  for (const key of ['exit_code', 'signal', 'reason']) {
    if (meta[key] !== last?.[key])
      complain(`${key} ${meta[key]}, and in the last event ${last?.[key]}`);
  }
  if (meta.socket !== undefined) complain('a socket of a terminal that has ended');
}

/** Its end was not seen: another supervisor put it on record. */
export function isLost(end) {
  return end?.reason === 'supervisor-lost';
}

/** The same that a client writes down of an output. */
export function hashOf(bytes) {
  return createHash('sha1').update(bytes).digest('hex');
}
