/** The verifier against the vectors of test/vectors/tokens, and these against their source. */
import { describe, expect, it } from '@jest/globals';
import { parseJwks } from '../../src/auth/jwks.js';
import { TokenVerifier } from '../../src/auth/token.js';
import type { AccessRequest } from '../../src/core/access.js';
import type { Capability } from '../../src/core/capability.js';
import { considerGrants, findGrant, parseGrants, writeGrants } from '../../src/core/grant.js';
import type { Name } from '../../src/core/names.js';
import { type SignalName, signalsRaisedBy } from '../../src/core/signals.js';
import type { AcceptedVector } from './acceptedVectors.js';
import type { DecisionVector } from './decisionVectors.js';
import type { RefusedVector } from './refusedVectors.js';
import {
  readVectorFile,
  vectorFileNames,
  vectorFileText,
  writeVectorFiles,
} from './vectorFiles.js';

if (process.env.UPDATE_VECTORS !== undefined) writeVectorFiles();

const { audience, issuers }: { audience: string; issuers: Record<string, unknown> } = JSON.parse(
  readVectorFile('issuers.json'),
);
const refused: RefusedVector[] = JSON.parse(readVectorFile('refused.json'));
const accepted: AcceptedVector[] = JSON.parse(readVectorFile('accepted.json'));
const decisions: DecisionVector[] = JSON.parse(readVectorFile('decisions.json'));

const trusted = new Map(
  await Promise.all(
    Object.entries(issuers).map(
      async ([name, jwks]) =>
        [name, { ceiling: undefined, keys: await parseJwks(JSON.stringify(jwks)) }] as const,
    ),
  ),
);

function verifierAt(now: number): TokenVerifier {
  const keys = { epoch: 0, issuer: (name: string) => trusted.get(name) };
  return new TokenVerifier({ keys, audience, clock: () => now * 1000 });
}

describe('the vectors', () => {
  it.each(vectorFileNames)('%s is what its source makes', (name) => {
    expect(readVectorFile(name)).toBe(vectorFileText(name));
  });

  it('have names of their own', () => {
    const names = [...refused, ...accepted, ...decisions].map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('a token is refused for', () => {
  it.each(refused)('$name', async ({ token, now, reason, where }) => {
    const error: unknown = await verifierAt(now)
      .verify(token)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: 'GranttyError', reason });
    expect(String(error)).toContain(where);
  });
});

describe('a token is accepted with', () => {
  it.each(accepted)('$name', async ({ token, now, expect: expected }) => {
    const verified = await verifierAt(now).verify(token);
    expect({
      kid: verified.keyId,
      sub: verified.subject,
      exp: verified.expiresAt,
      ...(verified.cnf && { x5tS256: verified.cnf.x5tS256 }),
      grants: writeGrants(verified.grants),
    }).toEqual(expected);
  });
});

function accessRequest({ request }: DecisionVector): AccessRequest {
  const { action, also, target, launch, signal, input } = request;
  const { owner, agent, session, terminal } = target;
  return {
    action: action as Capability,
    target: {
      owner: owner as Name,
      agent: agent as Name,
      session: session as Name,
      id: terminal as Name,
    },
    ...(also && { also: also as readonly Capability[] }),
    ...(launch && {
      launch: { command: launch.command, cwd: launch.cwd, envNames: launch.env_names },
    }),
    ...(signal && { signal: signal as SignalName }),
    ...(input && { signalBytes: signalsRaisedBy(Buffer.from(input, 'hex')) }),
  };
}

describe('grants decide on', () => {
  it.each(decisions)('$name', (vector) => {
    const grants = parseGrants(vector.grants);
    const request = accessRequest(vector);
    const decision = considerGrants(grants, request, vector.now);
    expect(findGrant(grants, request, vector.now)).toBe(decision.grant);
    expect(
      decision.grant
        ? { grant: decision.grant.id }
        : {
            refused: Object.fromEntries(
              decision.considered.map(({ grantId, why }) => [grantId, why]),
            ),
            required_action: decision.requiredAction,
          },
    ).toEqual(vector.expect);
  });
});
