// Types numbered frames at a program that echoes them, by an attachment and by Write at once.
import { deadline } from '../deadline.mjs';
import { create, kill, start } from './driver.mjs';
import { lastExit } from './signaller.mjs';
import { typeAttached } from './typedFrames.mjs';

export async function type(world) {
  const { stopping, pause, random } = world;
  for (let turn = 1; !stopping.aborted; turn += 1) {
    const terminal = await create(world, `t${turn}`, { program: 'echo' });
    if (terminal) {
      await session(world, terminal, 1);
      while (random.chance(0.5) && !stopping.aborted) {
        const again = await start(world, terminal);
        if (!again) break;
        await session(world, terminal, again.instance);
      }
    }
    await pause(100, 500);
  }
}

/** Types for a while at one instance; then waits until all of it was echoed, and says so. */
async function session(world, terminal, instance) {
  const { random, stopping, record } = world;
  const { uid } = terminal;
  const begun = instance > 1 ? await lastExit(world, terminal) : undefined;
  if ((await seen(world, terminal, 'ready', begun)) !== 'pattern') return;
  const time = deadline(stopping, random.int(2_000, 12_000));
  const about = { terminal, instance, time };
  const ends = await Promise.all([
    typeAttached(world, { ...about, lane: 'a' }),
    typeAttached(world, { ...about, lane: 'b' }),
    write(world, { ...about, lane: 'w' }),
  ]);
  if (ends.includes('exited')) return;
  const last = frame('end', 1, '');
  if (!(await send(world, { terminal, instance, lane: 'end' }, 1, last))) return;
  if ((await seen(world, terminal, '\\[end.1:\\]', begun)) !== 'pattern') return;
  record({ t: 'settled', uid, instance });
  await kill(world, terminal);
}

async function seen({ client, settle }, { ref }, value, afterSeq) {
  const { outcome } = await settle('wait', (options) =>
    client.terminals.wait(
      {
        terminal: ref,
        condition: { case: 'pattern', value },
        ...(afterSeq !== undefined && { afterSeq }),
      },
      options,
    ),
  );
  return outcome === 3 ? 'pattern' : 'exited';
}

/** By single calls, each repeated until it is answered. */
async function write(world, about) {
  const { random, pause } = world;
  for (let k = 1; !about.time.aborted; k += 1) {
    const text = frame(about.lane, k, random.letters(random.int(0, 3_000)));
    if (!(await send(world, about, k, text))) return 'exited';
    await pause(5, 150);
  }
  return 'done';
}

async function send(world, { terminal, instance, lane }, k, text) {
  const { random, record, settle, client } = world;
  const { id, uid, ref } = terminal;
  const place = { uid, instance, lane, k };
  record({ t: 'frame', ...place, len: text.length });
  const requestId = `write-${id}-${instance}-${lane}-${k}`;
  const request = { terminal: ref, data: Buffer.from(text), requestId };
  const once = () => settle('write', (options) => client.terminals.write(request, options));
  const answers = await Promise.all(random.chance(0.2) ? [once(), once()] : [once()]);
  for (const { refused } of answers) {
    const taken = refused === undefined ? text.length : null;
    record({ t: 'taken', ...place, taken, refused });
  }
  return answers[0].refused === undefined;
}

/** What can be told apart in the echo, whole or cut short. */
export function frame(lane, k, payload) {
  return `[${lane}.${k}:${payload}]`;
}
