// node-pty alone: a flood counted as it comes, or commands that end at once, so many at a time.
import { spawn } from 'node-pty';

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
};

console.log(JSON.stringify(await modes[mode]()));
process.exit();
