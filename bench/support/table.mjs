// The result as a table on standard output and as bench/results.json.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const HEAD = ['', 'row', 'unit', 'ours', 'reference', '', 'ratio', 'target', 'n', 'noise'];

export function table(rows) {
  const lines = [HEAD, ...rows.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function cells(row) {
  if (row.skipped) return ['–', row.name, '', 'skipped', '', '', '', '', '', ''];
  const range = (values) => (values ? `${values[0]}–${values[1]}` : '');
  const noise = [range(row.ours_range), range(row.reference_range)].filter(Boolean).join(' | ');
  return [
    row.met === null ? ' ' : row.met ? '✓' : '✗',
    row.name,
    row.unit,
    String(row.ours),
    row.reference === null ? '' : String(row.reference),
    row.reference_name ?? '',
    row.ratio === null ? '' : String(row.ratio),
    row.target ?? 'printed',
    String(row.runs),
    row.runs > 1 ? noise : '',
  ];
}

export async function writeResults(file, rows) {
  await writeFile(file, `${JSON.stringify(rows, null, 2)}\n`);
}

/** Beside the results: figures that grow, each a point of a curve. */
export async function writeSeries(name, series) {
  const file = fileURLToPath(new URL(`../${name}.json`, import.meta.url));
  await writeResults(file, series);
  console.log(`written to ${file}`);
}
