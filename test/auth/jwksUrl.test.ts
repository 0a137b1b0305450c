/** Keys from URLs: read in the background, bounded in age and in how often they are asked for. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type KeyChange, KeySet, MAX_STALENESS_MS } from '../../src/auth/keys.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { GranttyError } from '../../src/core/errors.js';
import { ManualClock } from '../server/manualClock.js';
import {
  AUDIENCE,
  ISSUER,
  key,
  otherKey,
  signed,
  soundClaims,
  soundHeader,
} from './vectorForge.js';

const MINUTE_MS = 60_000;

const ed = { ...key.publicJwk, kid: 'ed' };
const next = { ...otherKey.publicJwk, kid: 'next' };

/** What the issuer answers, and how often it was asked. */
class Issuer {
  keys: readonly object[] = [ed];
  status = 200;
  /** Sent instead of the set. */
  body: string | undefined;
  fetches = 0;
  underWay = 0;
  mostUnderWay = 0;
  /** Answers wait for it. */
  gate: Promise<void> = Promise.resolve();
  readonly #server: Server;

  constructor() {
    this.#server = createServer(async (_request, response) => {
      this.fetches += 1;
      this.underWay += 1;
      this.mostUnderWay = Math.max(this.mostUnderWay, this.underWay);
      await this.gate;
      this.underWay -= 1;
      if (this.status === 302) response.setHeader('location', '/elsewhere');
      response.statusCode = this.status;
      response.end(this.body ?? JSON.stringify({ keys: this.keys }));
    });
  }

  async start(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/jwks.json`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

describe('keys from a URL', () => {
  let issuer: Issuer;
  let clock: ManualClock;
  let keys: KeySet;
  let watching: Disposable;
  let changes: KeyChange[];
  let failures: string[];

  beforeEach(async () => {
    issuer = new Issuer();
    clock = new ManualClock();
    changes = [];
    failures = [];
    keys = new KeySet([{ issuer: ISSUER, jwksUrl: await issuer.start() }], () => clock.now());
    await keys.reload();
    watching = keys.watch({
      after: (ms, task) => clock.after(ms, task),
      onChange: (change) => changes.push(change),
      onFailure: (error) => failures.push(error.message),
    });
  });

  afterEach(async () => {
    watching[Symbol.dispose]();
    await issuer.stop();
  });

  /** Moves the clock in steps, and lets what each step set off come to its end. */
  async function pass(ms: number, step = 1_000): Promise<void> {
    for (let left = ms; left > 0; left -= step) {
      const { timersSet } = clock;
      const before = clock.timers;
      const told = changes.length;
      clock.advance(Math.min(step, left));
      // A read that has begun sets its timer anew when it has ended; that of staleness only tells.
      while (clock.timers < before && clock.timersSet === timersSet && changes.length === told) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  }

  function reason(): string | undefined {
    try {
      keys.issuer(ISSUER);
      return undefined;
    } catch (error) {
      return error instanceof GranttyError ? error.reason : String(error);
    }
  }

  const kids = () => [...(keys.issuer(ISSUER)?.keys.keys() ?? [])];

  it('are read again every five minutes', async () => {
    expect(issuer.fetches).toBe(1);
    issuer.keys = [ed, next];
    await pass(5 * MINUTE_MS - 1_000, 30_000);
    expect(kids()).toEqual(['ed']);
    await pass(1_000);
    expect(kids()).toEqual(['ed', 'next']);
    expect(issuer.fetches).toBe(2);
    expect(changes).toEqual([{ issuer: ISSUER, added: ['next'], retired: [], stale: false }]);
  });

  it('are out as soon as a read does not find them', async () => {
    const verifier = new TokenVerifier({ keys, audience: AUDIENCE, clock: () => clock.now() });
    const now = clock.now() / 1000;
    const claims = { ...soundClaims, iat: now, nbf: now, exp: now + 3600 };
    const token = signed(JSON.stringify(soundHeader), JSON.stringify(claims));
    await verifier.verify(token);
    const { epoch } = keys;
    issuer.keys = [next];
    await keys.reload();
    expect(keys.epoch).toBe(epoch + 1);
    expect(changes).toEqual([{ issuer: ISSUER, added: ['next'], retired: ['ed'], stale: false }]);
    await expect(verifier.verify(token)).rejects.toMatchObject({ reason: 'TOKEN_INVALID' });
  });

  it('that are another key under the same id count as retired and added', async () => {
    issuer.keys = [{ ...otherKey.publicJwk, kid: 'ed' }];
    await keys.reload();
    expect(changes).toEqual([{ issuer: ISSUER, added: ['ed'], retired: ['ed'], stale: false }]);
  });

  it('stay while the URL is down, with few fetches, up to one hour; then none is believed', async () => {
    issuer.status = 503;
    await pass(15 * MINUTE_MS, 500);
    expect(reason()).toBeUndefined();
    expect(failures[0]).toContain('HTTP status 503');
    // Ten minutes of failures: 1, 2, 4 … 32 s apart, then a minute.
    expect(issuer.fetches).toBeGreaterThan(10);
    expect(issuer.fetches).toBeLessThan(20);
    await pass(45 * MINUTE_MS - 1_000, 500);
    expect(reason()).toBeUndefined();
    expect(changes).toEqual([]);
    const { epoch } = keys;
    await pass(1_000, 500);
    expect(reason()).toBe('KEYS_UNAVAILABLE');
    expect(changes).toEqual([{ issuer: ISSUER, added: [], retired: [], stale: true }]);
    expect(keys.epoch).toBe(epoch + 1);
    await pass(10 * MINUTE_MS, 500);
    expect(issuer.fetches).toBeLessThan(80);

    issuer.status = 200;
    await pass(MINUTE_MS, 500);
    expect(reason()).toBeUndefined();
    expect(changes.at(-1)).toEqual({ issuer: ISSUER, added: [], retired: [], stale: false });
  });

  it('that are stale stop a token that was verified before', async () => {
    const verifier = new TokenVerifier({ keys, audience: AUDIENCE, clock: () => clock.now() });
    issuer.status = 500;
    await pass(MAX_STALENESS_MS - 10_000, 500);
    const now = clock.now() / 1000;
    const claims = { ...soundClaims, iat: now, nbf: now, exp: now + 3600 };
    const token = signed(JSON.stringify(soundHeader), JSON.stringify(claims));
    await verifier.verify(token);
    await pass(10_000, 500);
    await expect(verifier.verify(token)).rejects.toMatchObject({ reason: 'KEYS_UNAVAILABLE' });
  });

  it('are fetched once at a time, and by who asks later from the beginning', async () => {
    let open = () => {};
    issuer.gate = new Promise((resolve) => {
      open = resolve;
    });
    const reloads = [keys.reload(), keys.reload(), keys.reload()];
    issuer.keys = [next];
    open();
    await Promise.all(reloads);
    expect(issuer.mostUnderWay).toBe(1);
    expect(kids()).toEqual(['next']);
  });

  it.each<[string, () => void, string]>([
    [
      'a redirection',
      () => {
        issuer.status = 302;
      },
      'cannot be fetched',
    ],
    [
      'no set',
      () => {
        issuer.body = '{}';
      },
      'keys: must be an array',
    ],
    [
      'no key',
      () => {
        issuer.keys = [];
      },
      'holds no key',
    ],
    [
      'a private key',
      () => {
        issuer.keys = [{ ...ed, d: 'c2VjcmV0' }];
      },
      'private or symmetric',
    ],
    [
      'megabytes',
      () => {
        issuer.body = ' '.repeat(300_000);
      },
      'is larger than',
    ],
  ])('stay where the URL answers with %s', async (_, spoil, message) => {
    spoil();
    const failure: unknown = await keys.reload().catch((error: unknown) => error);
    expect(String(failure)).toContain(message);
    expect(String(failure)).not.toContain('c2VjcmV0');
    expect(kids()).toEqual(['ed']);
  });

  it('are not read any more when nobody watches', async () => {
    watching[Symbol.dispose]();
    expect(clock.timers).toBe(0);
    await pass(10 * MINUTE_MS, 30_000);
    expect(issuer.fetches).toBe(1);
  });
});
