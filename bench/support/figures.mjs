// Fills the table of docs/performance.md from the results of one run of the bench or more:
//   node bench/support/figures.mjs RESULTS.json...
// With several runs each figure is the median over them.
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { median } from './measure.mjs';

const DOCUMENT = fileURLToPath(new URL('../../docs/performance.md', import.meta.url));
const BEGIN = '<!-- figures: begin -->';
const END = '<!-- figures: end -->';

const files = process.argv.slice(2);
if (files.length === 0) {
  console.error('usage: node bench/support/figures.mjs RESULTS.json...');
  process.exit(2);
}
const runs = await Promise.all(files.map(async (file) => JSON.parse(await readFile(file, 'utf8'))));
const document = await readFile(DOCUMENT, 'utf8');
const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
if (begin < 0 || end < begin) throw new Error(`${DOCUMENT} has no place for figures`);
const filled = `${document.slice(0, begin + BEGIN.length)}\n${table(runs)}\n${document.slice(end)}`;
await writeFile(DOCUMENT, filled);

function table(all) {
  const key = ({ name, reference_name }) => `${name} | ${reference_name ?? ''}`;
  const names = [...new Set(all.flat().map(key))];
  const rows = names.map((name) => row(all.flat().filter((entry) => key(entry) === name)));
  return [
    `Medians over ${all.length} run${all.length === 1 ? '' : 's'}.`,
    '',
    '| row | ours | reference | ratio | target | met |',
    '|---|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function row(entries) {
  const measured = entries.filter(({ skipped }) => !skipped);
  const [first] = measured;
  if (first === undefined) return `| ${entries[0].name} | skipped | | | | |`;
  const middle = (field) => {
    const values = measured.map((entry) => entry[field]).filter((value) => value !== null);
    return values.length === 0 ? '' : Number(median(values).toPrecision(3));
  };
  const reference = first.reference_name ? `${middle('reference')} (${first.reference_name})` : '';
  const ratio = middle('ratio');
  const met =
    first.target === null ? '' : isMet(first.target, ratio === '' ? middle('ours') : ratio);
  const cells = [first.name, `${middle('ours')} ${first.unit}`, reference, ratio];
  return `| ${[...cells, first.target ?? 'printed', met].join(' | ')} |`;
}

function isMet(target, value) {
  const [sign, bound] = target.split(' ');
  return (sign === '≥' ? value >= Number(bound) : value <= Number(bound)) ? 'yes' : 'no';
}
