// What one decision costs, part by part, in this process: nothing of the network or of gRPC.
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openFileTrail } from '../../dist/audit/fileTrail.js';
import { RateBudgets } from '../../dist/auth/budgets.js';
import { checkCandidate } from '../../dist/auth/cedarCandidate.js';
import { PACKAGED_POLICY_DIR, readPolicySources } from '../../dist/auth/cedarFiles.js';
import { CedarPolicy } from '../../dist/auth/cedarPolicy.js';
import { KeySet } from '../../dist/auth/keys.js';
import { generateIssuerKey, mintToken } from '../../dist/auth/mint.js';
import { RevocationList } from '../../dist/auth/revocationList.js';
import { TokenVerifier } from '../../dist/auth/token.js';
import { considerGrants } from '../../dist/core/grant.js';
import { authorize } from '../../dist/server/authorize.js';
import { systemClock } from '../../dist/server/clock.js';
import { LeaseBook } from '../../dist/server/leaseBook.js';
import { interleave, rowOf } from '../support/measure.mjs';
import { OWNER } from '../support/server.mjs';

const NAME = 'urn:grantty:bench';
/** Decisions in flight, as in the row of gated calls. */
const PARALLEL = 32;

export async function measure(bench) {
  const dir = join(bench.dir, `decision-${randomUUID()}`);
  await mkdir(dir, { mode: 0o700 });
  const { gate, text, token } = await gateIn(bench, dir);
  const tuple = { owner: OWNER, agent: 'bench', session: 'default', id: 't' };
  const access = { action: 'terminal.read', target: tuple };
  const { issuer, subject, clientId, actors } = token;
  const question = {
    principal: { issuer, subject, clientId, actors },
    access,
    peer: { address: '127.0.0.1', provesPossession: false },
  };
  const caller = {
    credentials: text,
    peer: { address: '127.0.0.1' },
    path: '/grantty.v1.TerminalService/GetTerminal',
  };
  const ask = { ...access, target: { kind: 'known', terminal: { record: tuple } } };
  const seconds = Math.floor(Date.now() / 1000);
  const principal = { ...token, token };
  const intent = () =>
    gate.audit.intent({
      decisionId: randomUUID(),
      timeMs: Date.now(),
      principal,
      peer: caller.peer,
      rpc: caller.path.slice(1),
      ...access,
      considered: [],
      decision: 'allow',
      grantId: 'own',
    });

  const parts = {
    'whole, 32 in flight': [4_000, inFlight(() => authorize(gate, caller, ask))],
    'token, remembered': [10_000, inFlight(() => gate.tokens.verify(text))],
    grant: [50_000, inTurn(() => considerGrants(token.grants, access, seconds))],
    'Cedar, remembered': [50_000, inTurn(() => gate.policy.decide(question))],
    'Cedar, asked': [1_000, inTurn(() => gate.policy.explain(question))],
    'audit, 32 in flight': [4_000, inFlight(intent)],
  };
  const contestants = Object.fromEntries(
    Object.entries(parts).map(([name, [times, run]]) => {
      const count = bench.size(times, 100);
      return [name, async () => microseconds(count, run)];
    }),
  );
  await interleave(contestants, { rounds: 1 });
  const costs = await interleave(contestants, { rounds: bench.size(7, 1), seconds: 30 });
  for (const [name, ours] of Object.entries(costs)) {
    bench.row(rowOf({ name: `decision: ${name}`, unit: 'µs', ours }));
  }
}

/** All that a decision is made with, as a server has it, but for the terminals. */
async function gateIn(bench, dir) {
  const key = await generateIssuerKey();
  const jwksFile = join(dir, 'jwks.json');
  await writeFile(jwksFile, JSON.stringify(key.jwks));
  const keys = new KeySet([{ issuer: NAME, jwksFile }]);
  await keys.reload();
  const candidate = await checkCandidate(await readPolicySources(PACKAGED_POLICY_DIR));
  if (!candidate.ok) throw new Error('the packaged policies are not sound');
  const silent = { info() {}, warn() {}, error() {} };
  const audit = await openFileTrail({
    ...{ dir: join(dir, 'audit'), clock: systemClock, logger: silent, header: {} },
  });
  bench.onEnd(() => audit[Symbol.asyncDispose]());
  const revocations = await RevocationList.open(join(dir, 'revocations.jsonl'), Date.now);
  bench.onEnd(() => revocations[Symbol.asyncDispose]());
  const gate = {
    tokens: new TokenVerifier({ keys, audience: NAME, clock: Date.now }),
    policy: new CedarPolicy(candidate.set),
    inputRates: new RateBudgets(Date.now),
    leases: new LeaseBook(),
    pop: 'off',
    clock: systemClock,
    logger: silent,
    revocations,
    audit,
  };
  const text = await mintToken({
    ...{ key: key.privateJwk, issuer: NAME, audience: NAME, subject: 'bench' },
    ...{ ttl: 3600, now: Date.now() },
    grants: [
      {
        type: 'urn:grantty:terminal:v1',
        id: 'own',
        actions: ['terminal.read'],
        resource: { owner: OWNER, agent: '*', session: '*', terminal: '*' },
      },
    ],
  });
  return { gate, text, token: await gate.tokens.verify(text) };
}

async function microseconds(count, run) {
  const begin = performance.now();
  await run(count);
  return ((performance.now() - begin) * 1000) / count;
}

function inTurn(work) {
  return (count) => {
    for (let done = 0; done < count; done += 1) work();
  };
}

function inFlight(work) {
  return async (count) => {
    let begun = 0;
    const one = async () => {
      for (; begun < count; ) {
        begun += 1;
        await work();
      }
    };
    await Promise.all(Array.from({ length: PARALLEL }, one));
  };
}
