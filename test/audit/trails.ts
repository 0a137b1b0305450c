/** Trails for tests: a clock that is moved, a logger that collects, records of every kind. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditClock } from '../../src/audit/auditClock.js';
import { type FileTrail, type FileTrailOptions, openFileTrail } from '../../src/audit/fileTrail.js';
import type { AuditPrincipal, IntentRecord } from '../../src/audit/record.js';
import { type Grant, parseGrants } from '../../src/core/grant.js';

/** 2025-01-01T12:00:00Z. */
export const NOON = 1_735_732_800_000;

export class TestClock implements AuditClock {
  #tasks: { at: number; task: () => void }[] = [];

  constructor(private time = NOON) {}

  now(): number {
    return this.time;
  }

  after(ms: number, task: () => void): () => void {
    const entry = { at: this.time + ms, task };
    this.#tasks.push(entry);
    return () => {
      this.#tasks = this.#tasks.filter((one) => one !== entry);
    };
  }

  /** Goes on and runs what is due, in its order. */
  advance(ms: number): void {
    const end = this.time + ms;
    for (;;) {
      const due = this.#tasks.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
      if (due === undefined) break;
      this.#tasks = this.#tasks.filter((one) => one !== due);
      this.time = Math.max(this.time, due.at);
      due.task();
    }
    this.time = end;
  }
}

export interface Logged {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

export function collectingLogger() {
  const logged: Logged[] = [];
  const log = (fields: unknown, message?: string) => {
    logged.push({ fields: fields as Logged['fields'], message: message ?? '' });
  };
  return { logged, logger: { info: log, warn: log, error: log } };
}

export interface TestTrail extends AsyncDisposable {
  readonly dir: string;
  readonly clock: TestClock;
  readonly logged: Logged[];
  /** Opens it, as a server that starts does. */
  open(options?: Partial<FileTrailOptions>): Promise<FileTrail>;
}

/** A directory that goes away with the test; small enough a reserve that tests are quick. */
export async function testTrail(clock = new TestClock()): Promise<TestTrail> {
  const dir = await mkdtemp(join(tmpdir(), 'grantty-audit-'));
  const { logged, logger } = collectingLogger();
  const opened: FileTrail[] = [];
  return {
    dir,
    clock,
    logged,
    async open(options = {}) {
      const trail = await openFileTrail({
        dir,
        clock,
        logger,
        header: { version: 'test', isolation: 'shared-uid' },
        reserveBytes: 64 * 1024,
        ...options,
      });
      opened.push(trail);
      return trail;
    },
    async [Symbol.asyncDispose]() {
      // Those that a test has left as a server that is killed does: the kernel would close their files.
      await Promise.allSettled(opened.map((trail) => trail[Symbol.asyncDispose]()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export function grantOf(spec: {
  readonly id?: string;
  readonly actions?: readonly string[];
  readonly terminal?: string;
  readonly owner?: string;
  readonly constraints?: Readonly<Record<string, unknown>>;
}): Grant {
  const [grant] = parseGrants([
    {
      type: 'urn:grantty:terminal:v1',
      id: spec.id ?? 'g1',
      actions: spec.actions ?? ['terminal.read', 'terminal.write'],
      resource: {
        owner: spec.owner ?? '1000',
        agent: '*',
        session: '*',
        terminal: spec.terminal ?? '*',
      },
      ...(spec.constraints && { constraints: spec.constraints }),
    },
  ]);
  if (grant === undefined) throw new Error('no grant');
  return grant;
}

export function principalOf(
  jti: string,
  grants: readonly Grant[] = [grantOf({})],
  more: Partial<AuditPrincipal> & { readonly issuedAt?: number; readonly expiresAt?: number } = {},
): AuditPrincipal & { readonly token: NonNullable<AuditPrincipal['token']> } {
  const { issuedAt = NOON / 1000, expiresAt = issuedAt + 3600, ...rest } = more;
  return {
    issuer: 'https://issuer.test',
    subject: 'alice',
    clientId: 'orchestrator',
    jti,
    keyId: 'ed',
    actors: [],
    lineage: [],
    ...rest,
    token: { hash: `hash-of-${jti}`, issuedAt, notBefore: issuedAt, expiresAt, grants },
  };
}

let decisions = 0;

export function intentOf(more: Partial<IntentRecord> = {}): IntentRecord {
  decisions += 1;
  return {
    decisionId: `decision-${decisions}`,
    timeMs: NOON,
    principal: principalOf('token-1'),
    peer: { address: '127.0.0.1' },
    rpc: 'grantty.v1.TerminalService/Write',
    action: 'terminal.write',
    target: { owner: '1000', agent: 'coder', session: 'default', id: 't1' },
    decision: 'allow',
    grantId: 'g1',
    considered: [],
    ...more,
  };
}

/** Without a principal. */
export function strangerOf(more: Partial<IntentRecord> = {}): IntentRecord {
  const { principal: _, target: __, grantId: ___, ...rest } = intentOf(more);
  return { ...rest, decision: 'deny', reason: 'TOKEN_INVALID', ...more };
}
