// The client processes of a run: started, stopped for a while, made to vanish, replaced.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const CLIENT = new URL('client.mjs', import.meta.url).pathname;

/** Characters of what a client that failed has said. */
const WORDS = 600;

/** Milliseconds in which a client comes to its end when it is asked to. */
const END_MS = 330_000;

export class Clients {
  #living = new Map();
  #problems = [];
  #generation = 0;

  constructor(host, { seed, prefix, records, archive }) {
    this.host = host;
    this.settings = { seed, prefix, records, archive };
  }

  /** What clients did that they must not: an exit code, an end that does not come. */
  get problems() {
    return this.#problems;
  }

  get watchers() {
    return [...this.#living.values()].filter(({ role }) => role === 'watcher');
  }

  start(role, name, earlier) {
    const { host } = this;
    const { seed, prefix, records, archive } = this.settings;
    this.#generation += 1;
    const file = join(records, `${name}.${this.#generation}.jsonl`);
    const config = {
      role,
      name,
      seed: `${seed}/${name}/${this.#generation}`,
      record: file,
      ...(earlier && { earlier }),
      ...{ prefix: `${prefix}-${this.#generation}`, archive, owner: host.owner },
      ...{ address: host.address, issuer: host.issuer, audience: host.audience },
      ...{ ca: join(host.dir, 'ca.pem'), issuerKey: join(host.dir, 'issuer.jwk') },
      stateDir: host.stateDir,
    };
    const log = join(host.dir, `${name}.${this.#generation}.log`);
    const errors = openSync(log, 'a');
    const child = spawn(process.execPath, [CLIENT, JSON.stringify(config)], {
      stdio: ['ignore', 'ignore', errors],
    });
    closeSync(errors);
    const client = { role, name, child, file, vanished: false };
    this.#living.set(child.pid, client);
    child.once('exit', (code, signal) => {
      this.#living.delete(child.pid);
      if (code !== 0 && !client.vanished) {
        const why = readFileSync(log, 'utf8').trim().slice(0, WORDS);
        this.#problems.push(`client ${name} (${role}) ended with ${code ?? signal}: ${why}`);
      }
    });
    return client;
  }

  /** Gone without a word, in the middle of whatever it does; another one takes up its streams. */
  vanish(client) {
    client.vanished = true;
    client.child.kill('SIGKILL');
    return this.start(client.role, client.name, client.file);
  }

  /** Lets all of these roles come to their ends. */
  async end(...roles) {
    const ending = [...this.#living.values()].filter(({ role }) => roles.includes(role));
    await Promise.all(
      ending.map(async (client) => {
        const { child, name, role } = client;
        const ended = once(child, 'exit', { signal: AbortSignal.timeout(END_MS) });
        child.kill('SIGCONT');
        child.kill('SIGTERM');
        await ended.catch(() => {
          this.#problems.push(`client ${name} (${role}) did not end in ${END_MS} ms`);
          child.kill('SIGKILL');
        });
      }),
    );
  }

  /** A client that does one thing and ends by itself. */
  async played(role) {
    const { child } = this.start(role, role);
    await once(child, 'exit', { signal: AbortSignal.timeout(END_MS) });
  }

  killAll() {
    for (const client of this.#living.values()) {
      client.vanished = true;
      client.child.kill('SIGKILL');
    }
  }
}
