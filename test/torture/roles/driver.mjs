// Creates terminals, disturbs them, ends them, starts them again, deletes them.
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { finiteProgram, programs } from '../programs.mjs';
import { isTransient } from '../world.mjs';

/** Living terminals of one driver. */
const MOST_ALIVE = 6;

/** WAIT_OUTCOME_EXIT. */
const EXIT = 1;

export async function drive(world) {
  const { random, stopping, pause } = world;
  const mine = [];
  for (let turn = 1; !stopping.aborted; turn += 1) {
    if (mine.length === 0 || (await room(world, mine))) {
      const terminal = await create(world, `d${turn}`);
      if (terminal) mine.push(terminal);
    }
    if (mine.length > 0 && random.chance(0.6)) await disturb(world, mine, random.pick(mine));
    await pause(50, 600);
  }
}

async function room(world, mine) {
  const { terminals } = await world.settle('list', (options) =>
    world.client.terminals.listTerminals({ pageSize: 1000 }, options),
  );
  const alive = new Set((terminals ?? []).filter((one) => one.pid).map(({ uid }) => uid));
  return mine.filter(({ uid }) => alive.has(uid)).length < MOST_ALIVE;
}

/** With a request_id, so that a lost answer is asked for again; now and then at once, twice. */
export async function create(world, name, { program, args } = {}) {
  const { random, record, settle, client } = world;
  const chosen = program
    ? { name: program, args: args ?? {} }
    : random.chance(0.15)
      ? { name: 'tree', args: {} }
      : finiteProgram(random);
  const id = world.id(name);
  const requestId = `create-${id}`;
  const request = {
    agent: world.config.name,
    session: `s${random.int(1, 3)}`,
    id,
    command: programs[chosen.name].command(chosen.args),
    cwd: '/',
    size: { columns: random.int(20, 200), rows: random.int(5, 60) },
    labels: { program: chosen.name },
    requestId,
  };
  record({ t: 'create', id, requestId, program: chosen.name, args: chosen.args });
  const send = () =>
    settle('create', (options) => client.terminals.createTerminal(request, options));
  const answers = await Promise.all(random.chance(0.2) ? [send(), send()] : [send()]);
  for (const { terminal, refused } of answers) {
    record({ t: 'created', id, uid: terminal?.uid, instance: terminal?.instance, refused });
  }
  const { terminal } = answers[0];
  return terminal && { id, uid: terminal.uid, ref: { id }, program: chosen.name, starts: 0 };
}

async function disturb(world, mine, terminal) {
  const { random } = world;
  const kinds = { resize, stop, kill, start, remove, update, waitForExit };
  const kind = random.pick(
    [
      'resize',
      'resize',
      'stop',
      'kill',
      'start',
      'start',
      'remove',
      'update',
      'waitForExit',
    ].filter(
      // A flood that is cut short says less than one that ends.
      (one) => terminal.program === 'tree' || !['stop', 'kill'].includes(one) || random.chance(0.4),
    ),
  );
  await kinds[kind](world, terminal, mine);
}

async function resize({ random, client, settle, record }, { ref, uid }) {
  const size = { columns: random.int(20, 200), rows: random.int(5, 60) };
  const answer = await settle('resize', (options) =>
    client.terminals.resize({ terminal: ref, size }, options),
  );
  if (!answer.refused) record({ t: 'resized', uid, ...size });
}

async function stop({ client, settle }, { ref }) {
  await settle('stop', (options) =>
    client.terminals.stop({ terminal: ref, grace: { seconds: 2n } }, options),
  );
}

export async function kill({ client, settle }, { ref }) {
  await settle('kill', (options) => client.terminals.kill({ terminal: ref }, options));
}

export async function start({ client, settle, record, random }, terminal) {
  terminal.starts += 1;
  const requestId = `start-${terminal.id}-${terminal.starts}`;
  const request = { terminal: terminal.ref, requestId };
  record({ t: 'start', uid: terminal.uid, requestId });
  const send = () => settle('start', (options) => client.terminals.startTerminal(request, options));
  const answers = await Promise.all(random.chance(0.2) ? [send(), send()] : [send()]);
  for (const answer of answers) {
    const { refused, attempt } = answer;
    const instance = answer.terminal?.instance;
    record({ t: 'started', uid: terminal.uid, requestId, instance, refused, attempt });
  }
  return answers[0].terminal;
}

/** Its files are kept for the checker first: once its end is on disk they do not change any more. */
async function remove(world, terminal, mine) {
  const { client, settle, record, config } = world;
  const { id, uid, ref } = terminal;
  const { terminal: found } = await settle('get', (options) =>
    client.terminals.getTerminal({ terminal: ref }, options),
  );
  if (!found || found.pid) return;
  // It is said to have ended as soon as it has, and its record is written meanwhile.
  const { outcome } = await settle('wait', (options) =>
    client.terminals.wait({ terminal: ref, condition: { case: 'exit', value: true } }, options),
  );
  if (outcome !== EXIT) return;
  const { owner, agent, session } = { ...found, owner: found.ref.owner };
  const place = `home/${owner}/agent/${agent}/session/${session}/terminal/${id}`;
  await cp(join(config.stateDir, place), join(config.archive, uid), { recursive: true });
  record({ t: 'delete', uid, id });
  const { refused, attempt } = await settle('delete', (options) =>
    client.terminals.deleteTerminal({ terminal: ref, uid }, options),
  );
  // A lost answer, asked for again: what is gone cannot be found.
  const gone = !refused || (refused === 'TERMINAL_NOT_FOUND' && attempt > 1);
  record({ t: 'deleted', uid, id, gone, refused });
  if (gone) mine.splice(mine.indexOf(terminal), 1);
}

async function update({ random, client, settle, record }, { ref, uid }) {
  const title = random.letters(12);
  const answer = await settle('update', (options) =>
    client.terminals.updateTerminal({ terminal: ref, title }, options),
  );
  if (!answer.refused) record({ t: 'titled', uid, title });
}

async function waitForExit({ client, record, stopping }, { ref, program }) {
  if (program === 'tree') return;
  try {
    const request = { terminal: ref, condition: { case: 'exit', value: true } };
    await client.terminals.wait(request, { timeoutMs: 4_000, signal: stopping });
  } catch (failure) {
    if (stopping.aborted || isTransient(failure) || failure.reason === 'TERMINAL_NOT_FOUND') return;
    record({ t: 'fault', op: 'wait', failure: String(failure) });
  }
}
