// Signals a program that counts, each request repeated until it is answered: one effect each.
import { create, kill, start } from './driver.mjs';

const USR1 = 5;

export async function count(world) {
  const { stopping, pause, random } = world;
  for (let turn = 1; !stopping.aborted; turn += 1) {
    const terminal = await create(world, `c${turn}`, { program: 'count' });
    if (terminal) {
      await session(world, terminal, 1);
      if (random.chance(0.5)) {
        const again = await start(world, terminal);
        if (again) await session(world, terminal, again.instance);
      }
    }
    await pause(100, 500);
  }
}

async function session(world, terminal, instance) {
  const { stopping, random, record, client, settle, pause } = world;
  const { ref, uid, id } = terminal;
  const seen = (value, afterSeq) =>
    settle('wait', (options) =>
      client.terminals.wait(
        { terminal: ref, condition: { case: 'pattern', value }, ...(afterSeq && { afterSeq }) },
        options,
      ),
    );
  // Of a later instance, only what it printed itself.
  const begun = instance > 1 ? await lastExit(world, terminal) : undefined;
  if ((await seen('ready', begun)).outcome !== 3) return;
  let sent = 0;
  const rounds = random.int(3, 40);
  while (sent < rounds && !stopping.aborted) {
    sent += 1;
    const request = { terminal: ref, signal: USR1, requestId: `signal-${id}-${instance}-${sent}` };
    record({ t: 'signal', uid, instance, n: sent });
    const send = () => settle('signal', (options) => client.terminals.signal(request, options));
    const [answer] = await Promise.all(random.chance(0.3) ? [send(), send()] : [send()]);
    if (answer.refused) return;
    record({ t: 'signalled', uid, instance, n: sent });
    if ((await seen(`usr1 ${sent}\n`, begun)).outcome !== 3) return;
    await pause(10, 200);
  }
  record({ t: 'counted', uid, instance, n: sent });
  await kill(world, terminal);
}

/** Seq of the latest exit: what comes after it is the new instance's. */
export async function lastExit({ client, settle }, { ref }) {
  const { seq } = await settle('history', async () => {
    let found;
    for await (const event of client.watch({ terminal: ref, follow: false })) {
      if (event.case === 'exited') found = event.value.seq;
    }
    return { seq: found };
  });
  return seq;
}
