// What must be left when all is quiet: no process, no descriptor, no socket, no temporary file.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, openFiles, processesWith } from './host.mjs';

/** Milliseconds in which the last streams and logs are closed. */
const QUIET_MS = 15_000;

/** Of terminals: a PTY, a log. Of clients: connections. Listeners and admin sockets are servers' own. */
const ofTerminals = (file) => file.includes('ptmx') || file.includes('/terminal/');

/** Ends server and supervisor in order, and looks before, in between and after. */
export async function lookAtRest(host, prefix) {
  const problems = [];
  for (const [who, pid] of [
    ['server', host.serverPid],
    ['supervisor', host.supervisorPid],
  ]) {
    if (pid === undefined) problems.push(`no ${who} lives at the end`);
    else {
      const left = await eventually(
        () => openFiles(pid).filter(ofTerminals),
        (files) => files.length === 0,
        QUIET_MS,
      );
      if (left.length > 0) problems.push(`the ${who} still has open: ${left.join(', ')}`);
    }
  }
  const alive = processesWith(`CTX_TERMINAL=${prefix}`);
  if (alive.length > 0) problems.push(`processes of ended terminals live: ${alive.join(', ')}`);

  const code = await host.endServer('SIGTERM');
  if (code !== 0) problems.push(`the last server ended with ${code}`);
  const stopped = await host.ctx('supervise', '--stop', '--state-dir', host.stateDir);
  if (stopped.code !== 0 || !stopped.said.includes('has ended')) {
    problems.push(`ctx supervise --stop ended with ${stopped.code}: ${stopped.said}`);
  }
  const audit = await host.ctx('audit', 'verify', '--state-dir', host.stateDir);
  if (audit.code !== 0) problems.push(`ctx audit verify ended with ${audit.code}: ${audit.said}`);
  const leftover = processesWith(host.stateDir);
  if (leftover.length > 0) problems.push(`processes live on: ${leftover.join(', ')}`);
  return [...problems, ...filesLeft(host.stateDir)];
}

/** Names that begin with a dot are temporary, wherever they stand; sockets go with their servers. */
function filesLeft(stateDir) {
  const found = readdirSync(stateDir, { recursive: true, withFileTypes: true });
  return found
    .filter((entry) => entry.name.startsWith('.') || !(entry.isFile() || entry.isDirectory()))
    .map((entry) => `left behind: ${join(entry.parentPath ?? entry.path, entry.name)}`);
}
