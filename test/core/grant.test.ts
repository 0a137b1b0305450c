/** Laws of grants; single decisions stand as vectors in test/vectors/tokens/decisions.json. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { capabilities } from '../../src/core/capability.js';
import {
  type Ceiling,
  considerGrants,
  coverage,
  findGrant,
  type Grant,
  parseActions,
  parseGrants,
  requiredActions,
  seesWhatever,
  soleOwner,
  writeGrants,
} from '../../src/core/grant.js';
import type { Name } from '../../src/core/names.js';
import type { Selector } from '../../src/core/selector.js';
import { accessRequest, NOW, writtenGrants } from './grantArbitraries.js';

const RUNS = { numRuns: 1000 };
const grants = writtenGrants.map(parseGrants);

function withCeiling(ceiling: Ceiling): (grant: Grant) => Grant {
  return (grant) => ({ ...grant, ceiling });
}

function grantFor(changes: object): readonly Grant[] {
  const resource = { owner: '1000', agent: '*', session: '*', terminal: '*' };
  return parseGrants([
    { type: 'urn:grantty:terminal:v1', id: 'g1', actions: ['terminal.read'], resource, ...changes },
  ]);
}

describe('grants', () => {
  it('cover at least as much with every action more', () => {
    fc.assert(
      fc.property(
        grants,
        accessRequest,
        fc.constantFrom(...capabilities),
        (some, request, more) => {
          const wider = some.map((grant) => ({ ...grant, actions: [...grant.actions, more] }));
          if (findGrant(some, request, NOW)) expect(findGrant(wider, request, NOW)).toBeDefined();
        },
      ),
      RUNS,
    );
  });

  it('cover at least as much with every grant more', () => {
    fc.assert(
      fc.property(grants, grants, accessRequest, (some, others, request) => {
        if (findGrant(some, request, NOW)) {
          expect(findGrant([...others, ...some], request, NOW)).toBeDefined();
        }
      }),
      RUNS,
    );
  });

  it('cover a request together only if one of them does so alone', () => {
    const withoutSignalBytes = accessRequest.map(({ signalBytes: _, ...request }) => request);
    fc.assert(
      fc.property(grants, withoutSignalBytes, (some, request) => {
        const alone = some.filter((grant) => coverage(grant, request, NOW).covered);
        expect(findGrant(some, request, NOW)).toBe(alone[0]);
      }),
      RUNS,
    );
  });

  it('let signal bytes pass only where the writing grant allows them or each signal may be sent', () => {
    fc.assert(
      fc.property(grants, accessRequest, (some, { signalBytes = [], ...request }) => {
        const { target } = request;
        const excused = signalBytes.every((signal) =>
          findGrant(some, { action: 'terminal.signal', target, signal }, NOW),
        );
        const writing = some.filter((grant) => coverage(grant, request, NOW).covered);
        const allowing = writing.filter(
          ({ constraints }) =>
            excused || signalBytes.length === 0 || constraints.signalBytes === 'allow',
        );
        expect(findGrant(some, { ...request, signalBytes }, NOW)).toBe(allowing[0]);
      }),
      RUNS,
    );
  });

  it('never cover the owner 0 but by its name', () => {
    fc.assert(
      fc.property(grants, accessRequest, (some, request) => {
        const target = { ...request.target, owner: '0' as Name };
        const grant = findGrant(some, { ...request, target }, NOW);
        if (grant) expect(grant.resource.owner).toBe('0');
        const sees = some.filter((one) =>
          seesWhatever([one], request.action, target.owner, target.id, NOW),
        );
        for (const one of sees) expect(one.resource.owner).toBe('0');
      }),
      RUNS,
    );
  });

  it('have a normal form that writing and reading keep', () => {
    fc.assert(
      fc.property(grants, (some) => {
        const again = parseGrants(JSON.parse(JSON.stringify(writeGrants(some))));
        expect(again).toEqual(some);
        expect(writeGrants(again)).toEqual(writeGrants(some));
      }),
      RUNS,
    );
  });

  it('cover nothing once they have expired, and no less before', () => {
    fc.assert(
      fc.property(grants, accessRequest, (some, request) => {
        const grant = findGrant(some, request, NOW + 1);
        if (grant) expect(coverage(grant, { ...request, signalBytes: [] }, NOW).covered).toBe(true);
        expect(
          findGrant(
            some.filter(({ constraints }) => constraints.expiresAt),
            request,
            NOW + 1,
          ),
        ).toBeUndefined();
      }),
      RUNS,
    );
  });

  it('are all accounted for when none covers the request', () => {
    fc.assert(
      fc.property(grants, accessRequest, (some, request) => {
        const { grant, considered, requiredAction } = considerGrants(some, request, NOW);
        expect(grant).toBe(findGrant(some, request, NOW));
        expect(considered.map(({ grantId }) => grantId)).toEqual(
          some.slice(0, grant ? some.indexOf(grant) : some.length).map(({ id }) => id),
        );
        expect([...requiredActions(request), 'terminal.signal']).toContain(requiredAction);
      }),
      RUNS,
    );
  });

  it('see a terminal whatever its agent and session only if they would cover each of them', () => {
    fc.assert(
      fc.property(grants, accessRequest, (some, { action, target }) => {
        if (!seesWhatever(some, action, target.owner, target.id, NOW)) return;
        const request = { action, target, signal: 'SIGTERM' as const };
        const unlimited = some.map((grant) => ({
          ...grant,
          constraints: { ...grant.constraints, signals: undefined },
        }));
        expect(findGrant(unlimited, request, NOW)).toBeDefined();
      }),
      RUNS,
    );
  });
});

describe('a ceiling', () => {
  const ceiling: Ceiling = {
    owners: ['10*' as Selector],
    actions: ['terminal.read', 'terminal.kill'],
  };

  it('takes away and never gives', () => {
    fc.assert(
      fc.property(grants, accessRequest, (some, request) => {
        const below = some.map(withCeiling(ceiling));
        const grant = findGrant(below, request, NOW);
        if (grant === undefined) return;
        expect(findGrant(some, request, NOW)?.id).toBe(grant.id);
        expect(request.target.owner).toMatch(/^10/);
        expect(ceiling.actions).toEqual(expect.arrayContaining([...requiredActions(request)]));
      }),
      RUNS,
    );
  });

  it('says that it was the ceiling', () => {
    const [grant] = grantFor({ actions: ['terminal.write'] }).map(withCeiling(ceiling));
    const target = { owner: '1000', agent: 'a', session: 's', id: 'i' } as Record<string, string>;
    const request = { action: 'terminal.write', target } as unknown as Parameters<
      typeof coverage
    >[1];
    expect(grant && coverage(grant, request, NOW)).toEqual({ covered: false, why: 'ceiling' });
  });

  it.each(['0', '*', '0*'])('of owners %s does as grants do with the owner 0', (owner) => {
    const owners = [owner as Selector];
    const some = grantFor({ resource: { owner: '0', agent: '*', session: '*', terminal: '*' } });
    const below = some.map(withCeiling({ owners, actions: capabilities }));
    expect(seesWhatever(below, 'terminal.read', '0' as Name, 'x' as Name, NOW)).toBe(owner === '0');
  });
});

describe('seeing a terminal whatever its agent and session', () => {
  const sees = (changes: object, owner = '1000', id = 'x') =>
    seesWhatever(grantFor(changes), 'terminal.read', owner as Name, id as Name, NOW);
  const all = { owner: '*', agent: '*', session: '*', terminal: '*' };

  it.each<[string, object, boolean]>([
    ['by wildcards', { resource: all }, true],
    ['by the id', { resource: { ...all, terminal: 'x' } }, true],
    ['not by another id', { resource: { ...all, terminal: 'y' } }, false],
    ['not with an agent named', { resource: { ...all, agent: 'coder' } }, false],
    ['not with a prefix of agents', { resource: { ...all, agent: 'c*' } }, false],
    ['not with a session named', { resource: { ...all, session: 'default' } }, false],
    ['not with another action', { actions: ['terminal.write'] }, false],
    ['not once expired', { constraints: { expires_at: NOW } }, false],
  ])('%s', (_, changes, expected) => {
    expect(sees(changes)).toBe(expected);
  });
});

describe('the sole owner', () => {
  it.each<[string[], string | undefined]>([
    [[], undefined],
    [['1000'], '1000'],
    [['1000', '1000'], '1000'],
    [['1000', '2000'], undefined],
    [['*'], undefined],
    [['10*'], undefined],
    [['*', '1000'], '1000'],
    [['0'], '0'],
  ])('of grants for %j is %j', (owners, expected) => {
    const resource = { agent: '*', session: '*', terminal: '*' };
    const some = owners.flatMap((owner) => grantFor({ resource: { ...resource, owner } }));
    expect(soleOwner(some)).toBe(expected);
  });
});

describe('a list of actions', () => {
  it('comes out in one order, none twice', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...capabilities)), (written) => {
        const parsed = parseActions('actions', written);
        expect(new Set(parsed)).toEqual(new Set(written));
        expect(parsed).toEqual(capabilities.filter((action) => parsed.includes(action)));
      }),
    );
  });
});
