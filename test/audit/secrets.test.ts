/** Nothing secret gets into any file of a trail, whatever hangs on the records it is given. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { intentOf, NOON, principalOf, strangerOf, testTrail } from './trails.js';

it('writes no token, no input byte and no value of the environment', async () => {
  await using at = await testTrail();
  const trail = await at.open();
  const canary = 'CANARY-4f1d';
  const extra = {
    token: `eyJ.${canary}`,
    raw: canary,
    data: Buffer.from(canary),
    env: { SECRET: canary },
    message: canary,
  };
  const known = principalOf('t1');
  const principal = {
    ...Object.assign({}, known, extra),
    token: Object.assign({}, known.token, { raw: canary, text: canary }),
  };
  const more = { principal, peer: { address: '127.0.0.1', ...extra }, ...{ extra } };
  await trail.intent(intentOf(more));
  for (let count = 0; count < 3; count += 1) {
    await trail.intent(
      intentOf({
        ...more,
        decision: 'deny',
        reason: 'RATE_LIMITED',
        frame: 'input',
        inputBytes: 9,
      }),
    );
    await trail.intent(strangerOf({ peer: more.peer }));
  }
  trail.outcome({ decisionId: 'd', timeMs: NOON, status: 'OK', ...extra });
  await trail.change({
    change: 'delegated',
    timeMs: NOON,
    decisionId: 'd',
    parent: { issuer: 'i', jti: 't1', ...extra },
    child: principal,
    ...extra,
  });
  await trail.change({
    change: 'revoked',
    timeMs: NOON,
    what: { kind: 'token', issuer: 'i', jti: 'j', ...extra },
  });
  await trail.change({
    change: 'keys',
    timeMs: NOON,
    issuer: 'i',
    added: ['k'],
    retired: [],
    stale: false,
    ...extra,
  });
  at.clock.advance(10_000);
  await trail[Symbol.asyncDispose]();
  const secret = Buffer.from(canary);
  for (const name of await readdir(at.dir)) {
    const bytes = await readFile(join(at.dir, name));
    for (const form of [secret, secret.toString('base64'), secret.toString('hex')]) {
      expect({ name, holds: bytes.includes(form) }).toEqual({ name, holds: false });
    }
  }
  expect(JSON.stringify(at.logged)).not.toContain(canary);
});
