// Run by detached.test.ts under setsid(1): forks many PTYs as a session leader without a terminal.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { openPty } from '../../dist/pty/pty.js';

const [, , runs, script] = process.argv;
const hashes = new Set();
const exits = new Set();

for (let run = 0; run < Number(runs); run += 1) {
  const hash = createHash('sha256');
  const pty = openPty(
    {
      command: ['/bin/sh', '-c', script],
      env: { PATH: '/usr/bin:/bin' },
      cwd: '/',
      size: { cols: 80, rows: 24 },
    },
    (chunk) => hash.update(chunk),
  );
  if (script.includes('pause')) pty.pauseOutput();
  exits.add(JSON.stringify(await pty.exit));
  hashes.add(hash.digest('hex'));
  pty.close();
}

const stat = readFileSync('/proc/self/stat', 'latin1');
const [, , , session, terminal] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
process.stdout.write(
  JSON.stringify({
    hashes: [...hashes],
    exits: [...exits].map((exit) => JSON.parse(exit)),
    leadsSession: Number(session) === process.pid,
    terminal: Number(terminal),
  }),
);
