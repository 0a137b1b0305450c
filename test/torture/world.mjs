// What a role has in its hands: a connection, chance, its own record, and calls that are tried again.
import { setMaxListeners } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { mintToken } from '../../dist/auth/mint.js';
import { connect } from '../../dist/index.js';
import { Random } from './random.mjs';

/** Tokens end in the middle of streams, and are renewed before. */
const TOKEN_TTL_SECONDS = 60;
const TOKEN_RENEWAL_MS = 20_000;

/** Milliseconds until a single call counts as lost, and until all attempts together do. */
const CALL_MS = 20_000;
const SETTLE_MS = 300_000;

const actions = ['create', 'read', 'write', 'resize', 'signal', 'stop', 'kill'];

export function openWorld(config) {
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const random = new Random(config.seed);
  const record = (line) => appendFileSync(config.record, `${JSON.stringify(line)}\n`);
  const client = connect({
    address: config.address,
    ca: readFileSync(config.ca),
    token: tokenSource(config),
  });
  let calls = 0;

  /**
   * The answer, however often it takes: what is unavailable or late is sent again as it was. What
   * the server refuses is given as `{refused: reason}`; anything else is a fault, and on record.
   */
  async function settle(op, send) {
    const begun = performance.now();
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await send({ timeoutMs: CALL_MS });
        calls += 1;
        if (attempt > 1) record({ t: 'retried', op, attempts: attempt });
        return answer;
      } catch (failure) {
        if (isRefusal(failure)) return { refused: failure.reason, attempt };
        const late = performance.now() - begun > SETTLE_MS;
        if (!isTransient(failure) || late) {
          record({ t: 'fault', op, attempt, late, failure: describe(failure) });
          return { refused: 'FAULT', attempt };
        }
        await delay(50 + 300 * Math.random());
      }
    }
  }

  return {
    config,
    client,
    random,
    record,
    settle,
    stopping: stop.signal,
    stop: () => stop.abort(),
    owner: config.owner,
    id: (name) => `${config.prefix}-${config.name}-${name}`,
    pause: (least, greatest) =>
      delay(random.int(least, greatest), undefined, { signal: stop.signal }).catch(() => {}),
    close() {
      record({ t: 'closed', calls });
      client.close();
    },
  };
}

/** Lost, draining, or not there yet: the same request may be sent again. */
export function isTransient(failure) {
  return ['UNAVAILABLE', 'DEADLINE_EXCEEDED'].includes(failure?.code);
}

const refusals = [
  'TERMINAL_EXISTS',
  'TERMINAL_EXITED',
  'TERMINAL_NOT_FOUND',
  'QUOTA_TERMINALS',
  'QUOTA_STREAMS',
  'INPUT_QUEUE_FULL',
];

export function isRefusal(failure) {
  return refusals.includes(failure?.reason);
}

export function describe(failure) {
  return { code: failure?.code, reason: failure?.reason, text: String(failure?.stack ?? failure) };
}

function tokenSource({ issuerKey, issuer, audience, owner, name }) {
  const key = JSON.parse(readFileSync(issuerKey, 'utf8'));
  let token;
  let renewAt = 0;
  return () => {
    if (Date.now() < renewAt) return token;
    renewAt = Date.now() + TOKEN_RENEWAL_MS;
    token = mintToken({
      key,
      issuer,
      audience,
      subject: name,
      ttl: TOKEN_TTL_SECONDS,
      now: Date.now(),
      grants: [
        {
          type: 'urn:grantty:terminal:v1',
          id: 'torture',
          actions: actions.map((action) => `terminal.${action}`),
          resource: { owner, agent: '*', session: '*', terminal: '*' },
        },
      ],
    });
    return token;
  };
}
