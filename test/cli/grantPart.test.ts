/** What `ctx grant delegate` and `ctx grant revoke` make of their flags. */
import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from '@jest/globals';
import { whatOf } from '../../src/cli/commands/grantRevoke.js';
import { UsageError } from '../../src/cli/exitCode.js';
import { partOfGrant } from '../../src/cli/grantPart.js';
import { type Grant, GrantSchema } from '../../src/gen/public/grantty/v1/grant_service_pb.js';
import { Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';

const resource = { owner: '1000', agent: 'coder', session: '*', terminal: '*' };

function grant(id: string, constraints: object = { envAllow: ['*'], maxTerminals: 3 }): Grant {
  return create(GrantSchema, {
    id,
    actions: ['terminal.read', 'terminal.write'],
    resource,
    constraints,
  });
}

describe('a part of a grant', () => {
  it('is the whole where nothing is said', () => {
    const part = partOfGrant([grant('g')], { constraints: {} });
    expect(part).toMatchObject({
      id: 'g',
      parentGrantId: 'g',
      actions: ['terminal.read', 'terminal.write'],
      resource,
      constraints: { envAllow: ['*'], maxTerminals: 3, signalBytesAllowed: false },
    });
  });

  it('has what was given in the place of what the whole has', () => {
    const constraints = {
      expires_at: 1_700_000_000,
      max_terminals: 1,
      commands: [['/bin/sh', '-l']],
      cwd_under: ['/work/'],
      env_allow: [],
      signals: ['SIGINT', 'SIGTERM'],
      signal_bytes: 'allow',
      write_bytes_per_second: 10,
    };
    const flags = { actions: ['terminal.read'] as const, resource: '1000/coder/s/t', constraints };
    expect(partOfGrant([grant('g')], flags)).toMatchObject({
      actions: ['terminal.read'],
      resource: { owner: '1000', agent: 'coder', session: 's', terminal: 't' },
      constraints: {
        expiresAt: { seconds: 1_700_000_000n },
        maxTerminals: 1,
        commands: { commands: [{ argv: ['/bin/sh', '-l'] }] },
        cwdUnder: { paths: ['/work'] },
        envAllow: [],
        signals: { signals: [Signal.INT, Signal.TERM] },
        signalBytesAllowed: true,
        writeBytesPerSecond: 10n,
      },
    });
  });

  it.each([
    [[], undefined],
    [['a', 'b'], undefined],
    [['a', 'b'], 'c'],
  ])('of %j by the name %s is not guessed', (ids, id) => {
    const grants = ids.map((one) => grant(one));
    expect(() => partOfGrant(grants, { ...(id && { grant: id }), constraints: {} })).toThrow(
      UsageError,
    );
  });

  it.each(['a/b/c', 'a/b/c/d/e', '///', ''])('refuses the resource %j', (text) => {
    const flags = { resource: text, constraints: {} };
    expect(() => partOfGrant([grant('g')], flags)).toThrow(UsageError);
  });

  it('refuses a constraint that is unknown or wrong', () => {
    for (const constraints of [{ max_terminal: 1 }, { max_terminals: '1' }]) {
      expect(() => partOfGrant([grant('g')], { constraints })).toThrow(UsageError);
    }
  });
});

describe('what the operator revokes', () => {
  const flags = { iss: 'i', before: 'now' };

  it('is a token, a key, or a subject', () => {
    expect(whatOf('j', flags)).toEqual({ kind: 'token', issuer: 'i', jti: 'j' });
    expect(whatOf(undefined, { ...flags, kid: 'k' })).toEqual({
      kind: 'key',
      issuer: 'i',
      keyId: 'k',
    });
    expect(whatOf(undefined, { ...flags, subject: 's', before: '1700000000.5' })).toEqual({
      kind: 'subject',
      issuer: 'i',
      subject: 's',
      issuedBefore: 1_700_000_001,
    });
  });

  it('reaches the tokens of this very second, and none of the next', () => {
    const before = Math.floor(Date.now() / 1000) + 1;
    const what = whatOf(undefined, { ...flags, subject: 's' });
    const after = Math.floor(Date.now() / 1000) + 1;
    const issuedBefore = what.kind === 'subject' ? what.issuedBefore : 0;
    expect(issuedBefore).toBeGreaterThanOrEqual(before);
    expect(issuedBefore).toBeLessThanOrEqual(after);
  });

  it('must be one thing, of an issuer', () => {
    expect(() => whatOf(undefined, flags)).toThrow(UsageError);
    expect(() => whatOf('j', { ...flags, kid: 'k' })).toThrow(UsageError);
    expect(() => whatOf('j', { before: 'now' })).toThrow(UsageError);
  });
});
