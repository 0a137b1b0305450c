// One run of the bench: what it may use, what it has measured, and everything it must end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A reference, a tool or a feature is missing: the row is skipped aloud. */
export class Skip extends Error {}

/** Milliseconds that a process has to end after SIGTERM. */
const END_MS = 10_000;

export class Bench {
  rows = [];
  /** What ends with the bench, and on top of it what ends with the row that is measured. */
  #scopes = [[]];
  /** Long-lived processes of the row that is measured. */
  #children = [];

  constructor({ quick }) {
    this.quick = quick;
  }

  async open() {
    this.dir = await mkdtemp(join(tmpdir(), 'grantty-bench-'));
    this.onEnd(() => rm(this.dir, { recursive: true, force: true }));
    return this;
  }

  /** The full size, or one that only shows that the row works. */
  size(full, quick) {
    return this.quick ? quick : full;
  }

  onEnd(action) {
    this.#scopes.at(-1).push(action);
  }

  /** Runs a row's part of the bench: what it began ends with it. */
  async scoped(work) {
    this.#scopes.push([]);
    try {
      await work();
    } catch (error) {
      if (!(error instanceof Skip)) this.#complain();
      throw error;
    } finally {
      this.#children = [];
      await this.#end();
    }
  }

  #complain() {
    for (const child of this.#children) if (child.said() !== '') console.error(child.said());
  }

  async endAll() {
    while (this.#scopes.length > 0) await this.#end();
  }

  /** What was begun last is ended first. */
  async #end() {
    for (const action of this.#scopes.pop()?.reverse() ?? []) await action();
  }

  /** A process that is ended by its id when the bench or its row ends. */
  start(command, args, options = {}) {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
    child.stdin?.on('error', () => {});
    let said = '';
    child.stderr?.on('data', (chunk) => {
      said = `${said}${chunk}`.slice(-4000);
    });
    child.said = () => said.trim();
    this.#children.push(child);
    this.onEnd(() => end(child));
    return child;
  }

  /** Runs a program to its end. Resolves with its standard output. */
  async run(command, args, options = {}) {
    const child = this.start(command, args, options);
    const chunks = [];
    child.stdout.on('data', (chunk) => chunks.push(chunk));
    child.stdin.end();
    const [code, signal] = await once(child, 'close');
    if (code !== 0)
      throw new Error(`${command} ${args[0] ?? ''}: ${signal ?? code}: ${child.said()}`);
    return Buffer.concat(chunks).toString();
  }

  async json(command, args, options) {
    return JSON.parse(await this.run(command, args, options));
  }

  /** At once also as a line, so that a run that is broken off has not been for nothing. */
  row(row) {
    this.rows.push(row);
    console.log(`  ${row.name}: ${told(row)}`);
  }
}

function told({ skipped, ours, unit, ratio, reference_name: name }) {
  if (skipped) return `skipped: ${skipped}`;
  return `${ours} ${unit}${ratio === null ? '' : `, ${ratio} × ${name}`}`;
}

/** Resolves with the first line of a stream that `wanted` accepts. */
export async function lineOf(child, stream, wanted) {
  const lines = createInterface({ input: stream });
  const gone = once(child, 'exit').then(([code, signal]) => {
    throw new Error(
      `${child.spawnfile} ended (${signal ?? code}) before it was ready: ${child.said()}`,
    );
  });
  gone.catch(() => {});
  const found = (async () => {
    for await (const line of lines) if (wanted(line)) return line;
    return gone;
  })();
  return Promise.race([found, gone]);
}

export async function end(child, signal = 'SIGTERM') {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
  await ended;
  clearTimeout(timer);
}
