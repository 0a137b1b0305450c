// Kills every terminal that still runs.
import { kill } from './driver.mjs';

export async function endAll(world) {
  const { terminals } = await world.settle('list', (options) =>
    world.client.terminals.listTerminals({ pageSize: 1000 }, options),
  );
  const living = (terminals ?? []).filter(({ pid }) => pid !== undefined);
  await Promise.all(living.map(({ ref }) => kill(world, { ref: { id: ref.id } })));
}
