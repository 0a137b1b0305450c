// The records that client processes wrote, sorted by what they are about.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** All lines by their kind, in the order of each file; what a vanished client had begun is left out. */
export function readRecords(dir) {
  const byKind = new Map();
  for (const file of readdirSync(dir)) {
    const lines = readFileSync(join(dir, file), 'utf8').split('\n');
    // The last is empty, or was cut short by a kill.
    for (const [at, text] of lines.slice(0, -1).entries()) {
      const line = { ...JSON.parse(text), line: at };
      if (!byKind.has(line.t)) byKind.set(line.t, []);
      byKind.get(line.t).push(line);
    }
  }
  return (kind) => byKind.get(kind) ?? [];
}
