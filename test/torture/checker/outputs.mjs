// What each instance printed, against what its program is bound to print.
import { programs } from '../programs.mjs';
import { isLost } from './log.mjs';

/** Output and end of each instance of a terminal, by ordinal. */
export function instancesOf({ events }) {
  const found = new Map();
  for (const event of events) {
    if (!found.has(event.instance)) found.set(event.instance, { chunks: [], end: undefined });
    const one = found.get(event.instance);
    if (event.bytes) one.chunks.push(event.bytes);
    else one.end = event;
  }
  return [...found].map(([instance, { chunks, end }]) => ({
    instance,
    end,
    output: Buffer.concat(chunks),
  }));
}

/** A whole output of every instance that nobody ended, a beginning without a hole of every other. */
export function checkOutputs(lines, terminals) {
  const problems = [];
  const totals = { instances: 0, whole: 0, lost: 0, bytes: 0 };
  const made = new Map(lines('create').map((line) => [line.id, line]));
  for (const terminal of terminals.values()) {
    const { id } = terminal.meta;
    const { program, args } = made.get(id) ?? {};
    if (!program) {
      problems.push(`${id}: nobody asked for it`);
      continue;
    }
    const { output: expectedOf, exitCode } = programs[program];
    for (const { instance, end, output } of instancesOf(terminal)) {
      const complain = (what) => problems.push(`${id} instance ${instance} (${program}): ${what}`);
      totals.instances += 1;
      totals.bytes += output.length;
      if (isLost(end)) totals.lost += 1;
      if (!expectedOf) continue;
      const expected = expectedOf(args);
      if (!expected.subarray(0, output.length).equals(output)) {
        complain(
          `its ${output.length} bytes are not a beginning of the ${expected.length} expected`,
        );
      }
      const ended = end?.reason !== undefined || end?.signal !== undefined || end?.exit_code > 128;
      if (ended) continue;
      totals.whole += 1;
      if (output.length !== expected.length)
        complain(`${output.length} of ${expected.length} bytes`);
      if (end?.exit_code !== exitCode(args)) complain(`exit code ${end?.exit_code}`);
    }
  }
  return { problems, totals };
}
