// Judges the directory that a run has left once more: node test/torture/recheck.mjs DIR
import { join } from 'node:path';
import { check } from './checker/check.mjs';

const [dir] = process.argv.slice(2);
if (dir === undefined) {
  process.stderr.write('usage: node test/torture/recheck.mjs DIR\n');
  process.exit(2);
}
const [stateDir, records, archive] = ['state', 'records', 'archive'].map((name) => join(dir, name));
const { problems, totals } = check({ stateDir, records, archive });
process.stdout.write(`${JSON.stringify({ totals, problems }, null, 2)}\n`);
process.exitCode = problems.length > 0 ? 1 : 0;
