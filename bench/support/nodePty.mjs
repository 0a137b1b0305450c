// node-pty alone: a flood counted as it comes, commands that end at once, so many at a time, or commands
// that stay.
import { setTimeout } from 'node:timers/promises';
import { spawn } from 'node-pty';
import { ownBytes } from './processMemory.mjs';

const [mode, count, ...argv] = process.argv.slice(2);
const start = (options) => spawn(argv[0], argv.slice(1), { cols: 80, rows: 24, ...options });

const modes = {
  async flood() {
    const wanted = Number(count);
    let begin;
    let total = 0;
    let seen = '';
    await new Promise((resolve) => {
      const pty = start({ encoding: null });
      // It may lose the end of what the command prints: then the exit is the end.
      pty.onExit(resolve);
      pty.onData((data) => {
        if (begin === undefined) {
          seen += data.toString('latin1');
          if (!seen.includes('ready\r\n')) return;
          begin = performance.now();
          pty.write('\n');
          return;
        }
        total += data.length;
        if (total >= wanted) resolve();
      });
    });
    return { seconds: (performance.now() - begin) / 1000, bytes: total };
  },

  async churn() {
    const PARALLEL = 8;
    let left = Number(count);
    const begin = performance.now();
    const worker = async () => {
      while (left > 0) {
        left -= 1;
        await new Promise((resolve) => {
          const pty = start({});
          pty.onExit(resolve);
        });
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    return { per_second: Number(count) / ((performance.now() - begin) / 1000) };
  },

  /** Terminals that stay, up to each of the counts in turn, and what one costs. */
  async hold() {
    const held = [];
    const settled = async () => {
      for (let turn = 0; turn < 3; turn += 1) {
        globalThis.gc();
        await setTimeout(300);
      }
      return ownBytes(process.pid);
    };
    for (let i = 0; i < 16; i += 1) start({});
    const series = [];
    for (const step of count.split(',').map(Number)) {
      const micros = [];
      while (held.length < step) {
        const begin = performance.now();
        held.push(start({}));
        micros.push((performance.now() - begin) * 1000);
      }
      const sorted = micros.sort((a, b) => a - b);
      const at = (share) => sorted[Math.floor(share * (sorted.length - 1))];
      const created = { p50_us: at(0.5), p99_us: at(0.99) };
      series.push({ count: step, held: await settled(), created });
    }
    return series;
  },
};

console.log(JSON.stringify(await modes[mode]()));
process.exit();
