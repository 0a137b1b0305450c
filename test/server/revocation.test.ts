/** Revocation, retired keys and proof of possession, as a server over a fake supervisor sees them. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { ChangeRecord } from '../../src/audit/changeRecord.js';
import { KeySet } from '../../src/auth/keys.js';
import { generateIssuerKey } from '../../src/auth/mint.js';
import { RevocationList } from '../../src/auth/revocationList.js';
import { TokenVerifier } from '../../src/auth/token.js';
import { GranttyError } from '../../src/core/errors.js';
import type { Name } from '../../src/core/names.js';
import { GrantService } from '../../src/gen/public/grantty/v1/grant_service_pb.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import type { ServerOptions } from '../../src/server/server.js';
import { type TemporaryDir, temporaryDir } from '../store/temporaryDir.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';

const grants = GrantService.method;
const t1 = { owner: '1000', id: 't1' };

class Setup implements AsyncDisposable {
  readonly changes: ChangeRecord[] = [];
  /** Thrown by what is asked of the trail. */
  auditFailure: unknown;

  private constructor(
    readonly harness: Harness,
    readonly revocations: RevocationList,
    private readonly dir: TemporaryDir,
  ) {}

  static async start(options: Partial<ServerOptions> = {}): Promise<Setup> {
    const dir = await temporaryDir();
    const revocations = await RevocationList.open(join(dir.path, 'r'), () => 1_700_000_000_000);
    let setup: Setup | undefined;
    const failing = async () => {
      if (setup?.auditFailure !== undefined) throw setup.auditFailure;
    };
    const harness = await Harness.start({
      revocations,
      audit: {
        async intent({ decision, decisionId }) {
          if (decision === 'allow') await failing();
          return decisionId;
        },
        outcome: () => {},
        change: async (record) => {
          await failing();
          setup?.changes.push(record);
        },
      },
      ...options,
    });
    setup = new Setup(harness, revocations, dir);
    await harness.supervisor.add({ id: 't1' as Name });
    return setup;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.harness[Symbol.asyncDispose]();
    await this.revocations[Symbol.asyncDispose]();
    await this.dir[Symbol.asyncDispose]();
  }
}

async function reasonOf(call: Promise<unknown>): Promise<string | undefined> {
  return detailsOf(await failureOf(call)).info?.reason;
}

describe('a revocation', () => {
  it('fences what was decided under the token, ends its streams, and is put on record', async () => {
    await using setup = await Setup.start();
    const { harness } = setup;
    const token = await harness.token([{}], { jti: 'mine' });
    const other = await harness.token([{}], { jti: 'other' });
    const stream = harness.serverStream(terminals.watch, { terminal: t1 }, token);
    const kept = harness.serverStream(terminals.watch, { terminal: t1 }, other);
    await stream.next();
    await kept.next();

    const answer = await harness.unary(grants.revoke, {}, token);
    expect(answer).toMatchObject({ revokedTokens: 1, closedStreams: 1 });
    const fences = harness.supervisor.calls.filter(({ method }) => method === 'fence');
    const issuer = 'https://issuer.test';
    expect(fences).toHaveLength(1);
    expect(new Set(fences[0]?.args[0] as string[])).toEqual(
      new Set([JSON.stringify([issuer, 'mine'])]),
    );
    expect((await stream.rest()).at(-1)?.event).toMatchObject({
      case: 'closing',
      value: { reason: ClosingReason.GRANT_REVOKED },
    });
    expect(setup.changes).toMatchObject([
      { change: 'revoked', what: { kind: 'token', issuer, jti: 'mine' } },
    ]);
    expect(harness.server.load.streams).toBe(1);
    kept.call.cancel();
  });

  it('is in force, and says UNAVAILABLE, when the supervisor does not answer', async () => {
    await using setup = await Setup.start();
    const { harness } = setup;
    const token = await harness.token([{}], { jti: 'mine' });
    const fenced = new Promise<void>((resolve) => {
      harness.supervisor.fence = () => {
        resolve();
        return new Promise(() => {});
      };
    });
    const answer = harness.unary(grants.revoke, {}, token);
    const failing = reasonOf(answer);
    await fenced;
    expect(await reasonOf(harness.unary(terminals.getTerminal, { terminal: t1 }, token))).toBe(
      'GRANT_REVOKED',
    );
    harness.clock.advance(5_000);
    expect(await failing).toBe('SUPERVISOR_UNAVAILABLE');
    const again = harness.unary(terminals.getTerminal, { terminal: t1 }, token);
    expect(await reasonOf(again)).toBe('GRANT_REVOKED');
    expect(setup.changes).toHaveLength(1);
  });

  it('is in force when it could not be put on record, and says that', async () => {
    await using setup = await Setup.start();
    const { harness } = setup;
    const token = await harness.token([{}], { jti: 'mine' });
    setup.auditFailure = new GranttyError('AUDIT_UNAVAILABLE', 'no room');
    expect(await reasonOf(harness.unary(grants.revoke, {}, token))).toBe('AUDIT_UNAVAILABLE');
    setup.auditFailure = undefined;
    expect(await reasonOf(harness.unary(terminals.getTerminal, { terminal: t1 }, token))).toBe(
      'GRANT_REVOKED',
    );
    const { calls } = harness.supervisor;
    expect(calls.some(({ method }) => method === 'fence')).toBe(true);
  });

  it('that cannot be kept is in force, says so, and can be repeated by the operator', async () => {
    await using setup = await Setup.start();
    const { harness, revocations } = setup;
    const what = { kind: 'token', issuer: 'https://issuer.test', jti: 'mine' } as const;
    await revocations[Symbol.asyncDispose]();
    await expect(harness.server.revoke(what)).rejects.toMatchObject({
      reason: 'AUDIT_UNAVAILABLE',
    });
    const token = await harness.token([{}], { jti: 'mine' });
    expect(await reasonOf(harness.unary(terminals.getTerminal, { terminal: t1 }, token))).toBe(
      'GRANT_REVOKED',
    );
    await expect(harness.server.revoke(what)).rejects.toMatchObject({
      reason: 'AUDIT_UNAVAILABLE',
    });
  });

  it('of a token that a stream has left behind does not end the stream', async () => {
    await using setup = await Setup.start();
    const { harness } = setup;
    const attach = harness.bidi(terminals.attach, await harness.token([{}], { jti: 'old' }));
    attach.send({ frame: { case: 'open', value: { terminal: t1, kind: 1 } } });
    await attach.next();
    const token = await harness.token([{}], { jti: 'new' });
    attach.send({ frame: { case: 'reauthenticate', value: { token } } });
    attach.send({ frame: { case: 'input', value: { data: Buffer.from('x') } } });
    while ((await attach.next())?.event.case !== 'inputAck');

    const old = { kind: 'token', issuer: 'https://issuer.test', jti: 'old' } as const;
    expect(await harness.server.revoke(old)).toMatchObject({ closedStreams: 0 });
    const now = { ...old, jti: 'new' } as const;
    expect(await harness.server.revoke(now)).toMatchObject({ closedStreams: 1 });
    expect((await attach.rest()).at(-1)?.event.case).toBe('closing');
  });

  it('cannot be delegated around where the server has no key', async () => {
    await using setup = await Setup.start();
    const { harness } = setup;
    const call = harness.unary(grants.delegate, { actor: 'a' }, await harness.token());
    expect(await reasonOf(call)).toBe('KEYS_UNAVAILABLE');
  });
});

describe('a key that is retired', () => {
  it('ends the streams of its tokens at once', async () => {
    await using dir = await temporaryDir();
    const file = join(dir.path, 'jwks.json');
    const issuer = 'https://another.test';
    const [first, second] = [await generateIssuerKey(), await generateIssuerKey()];
    await writeFile(file, JSON.stringify(first.jwks));
    const keys = new KeySet([{ issuer, jwksFile: file }]);
    await keys.reload();
    const audience = 'grantty-test';
    await using setup = await Setup.start({
      tokens: new TokenVerifier({ keys, audience, clock: () => 1_700_000_000_000 }),
    });
    const { harness } = setup;
    using _watching = keys.watch({
      after: (ms, task) => harness.clock.after(ms, task),
      onChange: () => harness.server.recheck(),
      onFailure: () => {},
    });
    const token = await harness.token([{}], { key: first.privateJwk, issuer });
    const stream = harness.serverStream(terminals.watch, { terminal: t1 }, token);
    await stream.next();

    await writeFile(file, JSON.stringify(second.jwks));
    harness.clock.advance(30_000);
    expect((await stream.rest()).at(-1)?.event).toMatchObject({
      case: 'closing',
      value: { reason: ClosingReason.TOKEN_INVALID },
    });
    expect(stream.error && detailsOf(stream.error).info?.reason).toBe('TOKEN_INVALID');
  });
});

describe('where proof of possession is required', () => {
  it('a bearer token is refused, and the binding of one is looked at where it is not off', async () => {
    await using required = await Setup.start({ pop: 'required' });
    const bearer = await required.harness.token();
    const get = (setup: Setup, token: string) =>
      setup.harness.unary(terminals.getTerminal, { terminal: t1 }, token);
    expect(await reasonOf(get(required, bearer))).toBe('POP_MISMATCH');
    await using off = await Setup.start({ pop: 'off' });
    const bound = await off.harness.token([{}], { x5tS256: 'A'.repeat(43) });
    expect((await get(off, bound)).terminal?.ref?.id).toBe('t1');
  });
});
