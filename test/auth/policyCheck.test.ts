import { describeProblem } from '../../src/auth/cedarCheck.js';
import { openEngine } from '../../src/auth/cedarEngine.js';
import { check, nested, permitAll, tooDeep } from '../policy/policyDirs.js';

async function problemsOf(...texts: readonly string[]): Promise<readonly string[]> {
  const candidate = await check(...texts);
  return candidate.ok ? [] : candidate.problems.map(describeProblem);
}

describe('checking policies', () => {
  it('names every policy by its id and the set by a hash of its text', async () => {
    const one = await check(permitAll, '@id("f") forbid(principal, action, resource);');
    const same = await check('@id("f") forbid(principal, action, resource);', `\n${permitAll}`);
    const other = await check(permitAll);
    if (!one.ok || !same.ok || !other.ok) throw new Error('the sets are sound');
    expect(one.set.policies.map(({ id, effect }) => [id, effect])).toEqual([
      ['all', 'permit'],
      ['f', 'forbid'],
    ]);
    expect(same.set.hash).toBe(one.set.hash);
    expect(other.set.hash).not.toBe(one.set.hash);
  });

  it('refuses a misspelt action and says which was meant', async () => {
    expect(
      await problemsOf(
        permitAll,
        '// no kills\n\n@id("k")\nforbid(principal, action == Grantty::Action::"terminal.kil", resource);',
      ),
    ).toEqual([
      '1.cedar:4:29: k: unrecognized action `Grantty::Action::"terminal.kil"` (did you mean `Grantty::Action::"terminal.kill"`?)',
    ]);
  });

  it('refuses an attribute that no request has, counting columns in characters', async () => {
    expect(
      await problemsOf(
        '@id("a") @why("é€") forbid(principal,action,resource) when { resource.ownr == "0" };',
      ),
    ).toEqual([
      '0.cedar:1:62: a: attribute `ownr` on entity type `Grantty::Terminal` not found (did you mean `owner`?)',
    ]);
  });

  it('refuses what may be absent and is not asked for first', async () => {
    const scope = 'principal, action == Grantty::Action::"terminal.signal", resource';
    const [problem] = await problemsOf(
      `@id("a") forbid(${scope}) when { context.signal == "SIGKILL" };`,
    );
    expect(problem).toContain('optional attribute `signal`');
    expect(
      await problemsOf(
        `@id("a") forbid(${scope}) when { context has signal && context.signal == "SIGKILL" };`,
      ),
    ).toEqual([]);
  });

  it('refuses policies without a name, with a bad one, and with one that is taken', async () => {
    expect(
      await problemsOf(
        `${permitAll}\npermit(principal, action, resource);`,
        '@id("a b") permit(principal, action, resource);\n@id("all") forbid(principal, action, resource);',
      ),
    ).toEqual([
      '0.cedar:2:1: the policy needs a name: put @id("...") before it',
      '1.cedar:1:1: an @id is 1-64 letters, digits, ".", "_" or "-", the first no sign',
      '1.cedar:2:1: all: another policy has the same @id',
    ]);
  });

  it('refuses templates, what does not parse, and a set without policies', async () => {
    expect(
      await problemsOf(`${permitAll}\n@id("t") permit(principal == ?principal, action, resource);`),
    ).toEqual(['0.cedar:2:1: templates are not supported: write a policy']);
    const [broken] = await problemsOf(permitAll, '@id("x") permit(principal, action, resource');
    expect(broken).toMatch(/^1\.cedar:1:44: unexpected end of input/);
    expect(await problemsOf('')).toEqual(['there is no policy: nothing would be permitted']);
  });

  it('warns of a policy that can never hold', async () => {
    const candidate = await check(
      permitAll,
      '@id("n") forbid(principal, action, resource) when { false };',
    );
    expect(candidate.ok && candidate.warnings.map(({ policyId }) => policyId)).toEqual(['n']);
  });

  it('refuses 20,000 parentheses by the name of their file, and goes on checking', async () => {
    const [problem, ...rest] = await problemsOf(permitAll, tooDeep);
    expect(problem).toMatch(/^1\.cedar: cannot be parsed: /);
    expect(rest).toEqual([]);
    expect(await problemsOf(permitAll)).toEqual([]);
  });

  it('takes no depth that this thread could not load', async () => {
    for (const levels of [30, 40, 50, 60, 70, 80, 90, 100]) {
      const candidate = await check(nested(levels));
      expect(candidate.ok || levels > 30).toBe(true);
      if (candidate.ok) openEngine(candidate.set);
    }
  });
});
