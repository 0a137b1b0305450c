import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import { type Engine, openEngine } from '../../src/auth/cedarEngine.js';
import { CedarPolicy, type PolicyFailure } from '../../src/auth/cedarPolicy.js';
import type { PolicySet } from '../../src/auth/cedarSet.js';
import { request, uncheckedSet } from '../policy/policyDirs.js';

const PERMIT = 'all: permit(principal, action, resource);';
/** Fails to evaluate for whoever has an actor. */
const FAILING =
  'failing: forbid(principal, action, resource) when { principal.delegation_depth + 9223372036854775807 < 0 };';
const delegated = { principal: { issuer: 'https://issuer.test', subject: 'alice', actors: ['a'] } };

/** A policy that shows how often its engine was asked, and that can be told to break. */
function watched(set: PolicySet) {
  const seen = { asked: 0, opened: 0, failures: [] as PolicyFailure[] };
  const fault = { asking: undefined as Error | undefined, opening: undefined as Error | undefined };
  const policy = new CedarPolicy(set, {
    onFailure: (failure) => seen.failures.push(failure),
    open: (one) => {
      if (fault.opening) throw fault.opening;
      seen.opened += 1;
      const engine = openEngine(one, cedar);
      const broken = seen.opened;
      const ask: Engine = (question) => {
        seen.asked += 1;
        if (fault.asking && broken === seen.opened) throw fault.asking;
        return engine(question);
      };
      return ask;
    },
  });
  return { policy, seen, fault };
}

describe('a decision by policy', () => {
  it('names the policies that decided and the set that they are of', () => {
    const set = uncheckedSet(
      PERMIT,
      'f1: forbid(principal, action, resource) when { resource.owner == "7" };',
      'f2: forbid(principal, action, resource) when { principal.subject == "alice" && resource.owner == "7" };',
    );
    const policy = new CedarPolicy(set);
    expect(policy.decide(request())).toEqual({ permit: true, policyIds: ['all'], hash: set.hash });
    const resource = { owner: '7', agent: 'coder', session: 'default', terminal: 't1' };
    expect(policy.decide(request({ resource }))).toEqual({
      permit: false,
      policyIds: ['f1', 'f2'],
      hash: set.hash,
    });
  });

  it('is a denial where nothing permits', () => {
    const set = uncheckedSet('p: permit(principal, action, resource) when { false };');
    expect(new CedarPolicy(set).decide(request())).toEqual({
      permit: false,
      policyIds: [],
      hash: set.hash,
    });
  });

  it('is a denial where a forbid cannot be evaluated, and says so once', () => {
    const { policy, seen } = watched(uncheckedSet(PERMIT, FAILING));
    expect(policy.decide(request()).permit).toBe(true);
    const denied = { permit: false, policyIds: ['failing'], hash: policy.hash };
    expect(policy.decide(request(delegated))).toEqual(denied);
    expect(policy.decide(request(delegated))).toEqual(denied);
    expect(seen.failures).toEqual([
      { kind: 'evaluation', errors: [{ policyId: 'failing', message: expect.any(String) }] },
    ]);
    expect(policy.explain(request(delegated)).errors[0]?.message).toMatch(/overflow/);
  });

  it('asks for a kill where SIGKILL is sent or a terminal deleted', () => {
    const set = uncheckedSet(
      PERMIT,
      'nokill: forbid(principal, action == Grantty::Action::"terminal.kill", resource);',
    );
    const policy = new CedarPolicy(set);
    const decided = (given: object) => policy.decide(request({ ...given })).permit;
    expect(decided({ action: 'terminal.signal', signal: 'SIGTERM' })).toBe(true);
    expect(decided({ action: 'terminal.signal', signal: 'SIGKILL' })).toBe(false);
    expect(decided({ action: 'terminal.create' })).toBe(true);
    expect(decided({ action: 'terminal.create', also: ['terminal.kill'] })).toBe(false);
  });

  it('takes only the loopback address for this host', () => {
    const policy = new CedarPolicy(
      uncheckedSet('local: permit(principal, action, resource) when { context.peer.loopback };'),
    );
    const isLocal = (peer: string) => policy.decide(request({ peer })).permit;
    for (const peer of ['127.0.0.1', '127.8.9.10', '::1', '[::1]', '::ffff:127.0.0.1']) {
      expect([peer, isLocal(peer)]).toEqual([peer, true]);
    }
    for (const peer of [
      'unix',
      'unknown',
      '10.0.0.1',
      '::ffff:10.0.0.1',
      '127.0.0.1.example',
      'fe80::1%lo',
      '::',
    ]) {
      expect([peer, isLocal(peer)]).toEqual([peer, false]);
    }
  });

  it('can compare addresses by range', () => {
    const policy = new CedarPolicy(
      uncheckedSet(
        PERMIT,
        'net: forbid(principal, action, resource) unless { context.peer has ip && context.peer.ip.isInRange(ip("10.0.0.0/8")) };',
      ),
    );
    const permits = (peer: string) => policy.decide(request({ peer })).permit;
    expect(['10.1.2.3', '::ffff:10.1.2.3'].map(permits)).toEqual([true, true]);
    expect(['11.1.2.3', 'unix', '2001:db8::1'].map(permits)).toEqual([false, false, false]);
  });
});

describe('remembered answers', () => {
  it('spare the engine the same question', () => {
    const { policy, seen } = watched(uncheckedSet(PERMIT));
    const first = policy.decide(request());
    expect(policy.decide(request())).toBe(first);
    expect(seen.asked).toBe(1);
  });

  it('are not given to another question', () => {
    const { policy, seen } = watched(uncheckedSet(PERMIT));
    const launch = { command: ['/bin/sh'], cwd: '/', env_names: ['A'] };
    const tuple = { owner: '1000', agent: 'coder', session: 'default', terminal: 't1' };
    const principal = { issuer: 'https://issuer.test', subject: 'alice', client_id: 'c' };
    const others = [
      {},
      { principal },
      { principal: { ...principal, issuer: 'other' } },
      { principal: { ...principal, subject: 'other' } },
      { principal: { ...principal, actors: ['a', 'b'] } },
      { principal: { ...principal, actors: ['b', 'a'] } },
      { action: 'terminal.stop' },
      { also: ['terminal.resize'] },
      ...Object.keys(tuple).map((key) => ({ resource: { ...tuple, [key]: 'other' } })),
      { peer: '::1' },
      { proves_possession: true },
      { action: 'terminal.signal', signal: 'SIGINT' },
      { action: 'terminal.signal', signal: 'SIGTERM' },
      { action: 'terminal.write', raises: [] },
      { action: 'terminal.write', raises: ['SIGINT'] },
      { action: 'terminal.create', launch },
      { action: 'terminal.create', launch: { ...launch, command: ['/bin/sh', ''] } },
      { action: 'terminal.create', launch: { ...launch, cwd: '/tmp' } },
      { action: 'terminal.create', launch: { ...launch, env_names: ['B'] } },
    ];
    for (const other of others) {
      const before = seen.asked;
      policy.decide(request(other));
      expect([other, seen.asked > before]).toEqual([other, true]);
    }
  });

  it('are dropped with their set', () => {
    const { policy, seen } = watched(uncheckedSet(PERMIT));
    expect(policy.decide(request()).permit).toBe(true);
    const next = uncheckedSet('none: forbid(principal, action, resource);');
    policy.swap(next);
    expect(policy.decide(request())).toEqual({
      permit: false,
      policyIds: ['none'],
      hash: next.hash,
    });
    expect(seen.asked).toBe(2);
  });

  it('are not made of questions that are long', () => {
    const { policy, seen } = watched(uncheckedSet(PERMIT));
    const launch = { command: ['/bin/sh', '-c', 'x'.repeat(100_000)], cwd: '/' };
    const long = request({ action: 'terminal.create', launch });
    expect([policy.decide(long).permit, policy.decide(long).permit]).toEqual([true, true]);
    expect(seen.asked).toBe(2);
  });
});

describe('an instance that breaks while deciding', () => {
  it('denies, is replaced, and is asked again', () => {
    const { policy, seen, fault } = watched(uncheckedSet(PERMIT));
    fault.asking = new Error('memory access out of bounds');
    expect(policy.decide(request())).toEqual({ permit: false, policyIds: [], hash: policy.hash });
    expect(seen).toMatchObject({ opened: 2, failures: [{ kind: 'instance', err: fault.asking }] });
    fault.asking = undefined;
    expect(policy.decide(request()).permit).toBe(true);
  });

  it('denies as long as it cannot be replaced', () => {
    const { policy, fault } = watched(uncheckedSet(PERMIT));
    fault.asking = new Error('memory access out of bounds');
    fault.opening = new Error('no memory');
    expect(policy.decide(request()).permit).toBe(false);
    expect(policy.decide(request()).permit).toBe(false);
    fault.opening = undefined;
    fault.asking = undefined;
    expect(policy.decide(request()).permit).toBe(false);
    expect(policy.decide(request()).permit).toBe(true);
  });

  it('leaves the old set in force where a new one cannot be loaded', () => {
    const { policy, fault } = watched(uncheckedSet(PERMIT));
    const { hash } = policy;
    fault.opening = new Error('no memory');
    expect(() => policy.swap(uncheckedSet('n: forbid(principal, action, resource);'))).toThrow();
    expect(policy.hash).toBe(hash);
    expect(policy.decide(request()).permit).toBe(true);
  });

  // In a process of its own: here `require` is not Node's and never gives a second instance.
  it('is really another one afterwards', async () => {
    const auth = new URL('../../dist/auth/', import.meta.url);
    const program = `
      import { newCedar, openEngine } from '${auth}cedarEngine.js';
      import { CedarPolicy } from '${auth}cedarPolicy.js';
      const instances = [];
      const open = (set) => {
        instances.push(newCedar());
        return openEngine(set, instances.at(-1));
      };
      const policy = new CedarPolicy(${JSON.stringify(uncheckedSet(PERMIT))}, { open });
      const request = ${JSON.stringify(request())};
      const deep = 'permit(principal, action, resource) when {' + '('.repeat(20000) + 'true' + ')'.repeat(20000) + '};';
      try { instances[0].checkParsePolicySet({ staticPolicies: deep }); } catch {}
      const decided = [policy.decide(request).permit, policy.decide(request).permit];
      console.log(JSON.stringify({ decided, instances: instances.length }));
    `;
    const { stdout } = await promisify(execFile)(process.execPath, [
      '--input-type=module',
      '--eval',
      program,
    ]);
    expect(JSON.parse(stdout)).toEqual({ decided: [false, true], instances: 2 });
  });
});
