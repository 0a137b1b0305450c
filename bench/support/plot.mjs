// Curves as a small SVG file: both axes logarithmic, so that what is flat looks flat and what is
// linear rises by one decade in each.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

const WIDTH = 640;
const HEIGHT = 360;
const LEFT = 70;
const RIGHT = 20;
const TOP = 40;
const BOTTOM = 50;
const COLOURS = ['#0b6e99', '#c2410c', '#4d7c0f', '#7e22ce', '#525252'];

/** @param series curves by name, each of points `[x, y]` above 0 */
export function plot({ title, x, y, series }) {
  const curves = Object.entries(series)
    .map(([name, points]) => [name, points.filter(([a, b]) => a > 0 && b > 0)])
    .filter(([, points]) => points.length > 0);
  const all = curves.flatMap(([, points]) => points);
  const across = axis(
    all.map(([value]) => value),
    LEFT,
    WIDTH - RIGHT,
  );
  const up = axis(
    all.map(([, value]) => value),
    HEIGHT - BOTTOM,
    TOP,
  );
  const parts = [
    text(WIDTH / 2, 20, title, 'middle', 14),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x, 'middle'),
    `<text x="16" y="${HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 ${HEIGHT / 2})">${escaped(y)}</text>`,
    ...across.ticks.map(
      (value) =>
        line(across.at(value), TOP, across.at(value), HEIGHT - BOTTOM) +
        text(across.at(value), HEIGHT - BOTTOM + 16, label(value), 'middle'),
    ),
    ...up.ticks.map(
      (value) =>
        line(LEFT, up.at(value), WIDTH - RIGHT, up.at(value)) +
        text(LEFT - 6, up.at(value) + 4, label(value), 'end'),
    ),
    ...curves.flatMap(([name, points], i) => {
      const colour = COLOURS[i % COLOURS.length];
      const places = points.map(([a, b]) => [across.at(a), up.at(b)]);
      return [
        `<polyline points="${places.map((place) => place.join()).join(' ')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
        ...places.map(([a, b]) => `<circle cx="${a}" cy="${b}" r="3" fill="${colour}"/>`),
        `<g fill="${colour}">${text(LEFT + 10, TOP + 16 * (i + 1), name, 'start')}</g>`,
      ];
    }),
  ];
  const size = `width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}"`;
  const ground = `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`;
  const drawn = [`<title>${escaped(title)}</title>`, ground, ...parts].join('\n');
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="12">\n${drawn}\n</svg>\n`;
}

export async function writePlot(file, spec) {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, plot(spec));
}

/** Whole decades around the values, one at least. */
function axis(values, from, to) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const at = (value) =>
    Math.round((from + ((Math.log10(value) - low) / (high - low)) * (to - from)) * 10) / 10;
  return { at, ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)) };
}

function label(value) {
  if (value >= 1e6) return `${value / 1e6} M`;
  return value >= 1e3 ? `${value / 1e3} k` : String(Number(value.toPrecision(1)));
}

function line(x1, y1, x2, y2) {
  return `<line x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}" stroke="#d4d4d4"/>`;
}

function text(x, y, content, anchor, size) {
  const font = size === undefined ? '' : ` font-size="${size}"`;
  return `<text x="${x}" y="${y}" text-anchor="${anchor}"${font}>${escaped(content)}</text>`;
}

function escaped(content) {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
