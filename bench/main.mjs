// Measures grantty against what else one could use, in one run on this machine.
import { cpus, release } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Bench, Skip } from './support/bench.mjs';
import { table, writeResults } from './support/table.mjs';

/** In the order of their running: the short ones first, so that a mistake shows early. */
const ROWS = [
  'echo',
  'decision',
  'unary',
  'churn',
  'list',
  'revoke',
  'memory',
  'sessions',
  'flood',
  'fanout',
  'history',
];

/** Minutes each, and only when named: what many terminals do to each other. */
const LONG_ROWS = ['scale', 'crowd'];

/** Milliseconds after which the bench has failed: the whole takes less than ten minutes. */
const DEADLINE_MS = 20 * 60_000;

const USAGE = `node bench/main.mjs [--quick] [--row NAME]... [--growth]

  --quick     tiny sizes: shows that every row works, and no figure that counts
  --row NAME  only these: ${ROWS.join(', ')};
              or ${LONG_ROWS.join(', ')}, which are not run otherwise
  --growth    instead: how cost grows, as curves in docs/img (six minutes)

Writes bench/results.json unless --row, --growth or --quick is given.`;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    growth: { type: 'boolean', default: false },
    row: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
});
const unknown = values.row.filter((name) => ![...ROWS, ...LONG_ROWS].includes(name));
if (values.help || unknown.length > 0) {
  console.log(unknown.length > 0 ? `no such row: ${unknown.join(', ')}\n\n${USAGE}` : USAGE);
  process.exit(values.help ? 0 : 2);
}

const chosen = values.growth ? ['growth'] : values.row.length > 0 ? values.row : ROWS;
const bench = await new Bench({ quick: values.quick }).open();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await bench.endAll();
    process.exit(130);
  });
}

const deadline = setTimeout(async () => {
  console.error('the bench took too long');
  await bench.endAll();
  process.exit(1);
}, DEADLINE_MS);

let failed = false;
try {
  console.log(
    `${cpus().length} × ${cpus()[0].model}, Linux ${release()}, Node.js ${process.version}`,
  );
  if (values.quick) console.log('--quick: none of these figures counts');
  for (const name of chosen) {
    const begin = performance.now();
    const { measure } = await import(`./rows/${name}.mjs`);
    try {
      await bench.scoped(() => measure(bench));
    } catch (error) {
      if (!(error instanceof Skip)) {
        failed = true;
        console.error(`${name}:`, error);
      }
      bench.row({ name, skipped: error.message.split('\n')[0] });
    }
    console.log(`${name}: ${((performance.now() - begin) / 1000).toFixed(1)} s`);
  }
} finally {
  clearTimeout(deadline);
  await bench.endAll();
}

console.log(`\n${table(bench.rows)}`);
const remarks = bench.rows.flatMap(({ name, skipped, note }) => {
  if (skipped) return [`${name}: skipped: ${skipped}`];
  return note ? [`${name}: ${note}`] : [];
});
for (const remark of new Set(remarks)) console.log(remark);
if (!values.quick && chosen === ROWS) {
  const file = fileURLToPath(new URL('./results.json', import.meta.url));
  await writeResults(file, bench.rows);
  console.log(`\nwritten to ${file}`);
}
process.exit(failed ? 1 : 0);
