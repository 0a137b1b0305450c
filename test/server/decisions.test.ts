/** Who is let in, who sees what, and in which order things are told. */
import { Metadata, status } from '@grpc/grpc-js';
import { grantsAlone } from '../../src/auth/policy.js';
import { GranttyError } from '../../src/core/errors.js';
import type { Name } from '../../src/core/names.js';
import { GrantService } from '../../src/gen/public/grantty/v1/grant_service_pb.js';
import { SessionService } from '../../src/gen/public/grantty/v1/session_service_pb.js';
import { AttachmentKind, Signal } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';
import { rawCall } from './rawCall.js';

const ref = (id: string, owner = '1000') => ({ terminal: { owner, id } });

describe('decisions', () => {
  let harness: Harness;
  beforeAll(async () => {
    harness = await Harness.start();
    await harness.supervisor.add({ id: 't1' as Name });
    await harness.supervisor.add({ id: 'other' as Name, agent: 'reviewer' as Name });
  });
  beforeEach(() => {
    harness.supervisor.calls.length = 0;
    harness.intents.length = 0;
    harness.outcomes.length = 0;
    harness.logged.length = 0;
  });
  afterAll(() => harness[Symbol.asyncDispose]());

  const get = async (token: string | Metadata | undefined, id = 't1') =>
    harness.unary(terminals.getTerminal, ref(id), token);

  async function reasonOf(call: Promise<unknown>) {
    const error = await failureOf(call);
    return { code: error.code, reason: detailsOf(error).info?.reason };
  }

  describe('of who asks', () => {
    it('refuses a call without a token', async () => {
      const reason = await reasonOf(get(undefined));
      expect(reason).toEqual({ code: status.UNAUTHENTICATED, reason: 'TOKEN_MISSING' });
      expect(harness.supervisor.calls).toEqual([]);
    });

    it.each(['Basic abc', 'Bearer', 'Bearer a b', 'abc'])('refuses "%s"', async (value) => {
      const metadata = new Metadata();
      metadata.set('authorization', value);
      expect((await reasonOf(get(metadata))).reason).toBe('TOKEN_INVALID');
    });

    it('takes the scheme in any case', async () => {
      const metadata = new Metadata();
      metadata.set('authorization', `bearer ${await harness.token()}`);
      await get(metadata);
    });

    it('refuses two tokens, even when both are good and Node.js would show the first alone', async () => {
      const token = await harness.token();
      const decided = new Promise<{ decision: string; reason?: string | undefined }>((resolve) => {
        harness.onIntent = resolve;
      });
      const path = '/grantty.v1.TerminalService/GetTerminal';
      const authorization = ['authorization', `Bearer ${token}`] as const;
      await using _call = await rawCall(harness.server.port, path, [authorization, authorization]);
      expect(await decided).toMatchObject({ decision: 'deny', reason: 'TOKEN_INVALID' });
      expect(harness.supervisor.calls).toEqual([]);
    });

    it('refuses an expired token', async () => {
      const token = await harness.token([{}], { ttl: 1, now: harness.clock.now() - 2_000 });
      expect(await reasonOf(get(token))).toEqual({
        code: status.UNAUTHENTICATED,
        reason: 'TOKEN_EXPIRED',
      });
    });

    it('refuses a token that is bound to a certificate over a connection without it', async () => {
      const token = await harness.token([{}], { x5tS256: 'A'.repeat(43) });
      expect((await reasonOf(get(token))).reason).toBe('POP_MISMATCH');
    });

    it('refuses a revoked token', async () => {
      harness.revoked.add('gone');
      const token = await harness.token([{}], { jti: 'gone' });
      expect(await reasonOf(get(token))).toEqual({
        code: status.PERMISSION_DENIED,
        reason: 'GRANT_REVOKED',
      });
    });

    it.each([...Object.values(GrantService.method), SessionService.method.spawn])(
      'refuses $name without a token, whatever it says',
      async (method) => {
        const error = await failureOf(harness.unary(method, {}, undefined));
        expect(error.code).toBe(status.UNAUTHENTICATED);
        expect(detailsOf(error).info?.reason).toBe('TOKEN_MISSING');
      },
    );

    it('tells that a message is malformed to who has a token, and to nobody else', async () => {
      const call = (token: string | undefined) =>
        harness.raw('/grantty.v1.TerminalService/GetTerminal', Buffer.from([0x0a, 0x7f]), token);
      expect((await reasonOf(call(undefined))).reason).toBe('TOKEN_MISSING');
      expect(await reasonOf(call(await harness.token()))).toEqual({
        code: status.INVALID_ARGUMENT,
        reason: 'FIELD_INVALID',
      });
    });
  });

  /** Rejects with how an Attach ended that was opened with this one frame. */
  async function opened(about: ReturnType<typeof ref>, token: string): Promise<unknown> {
    const stream = harness.bidi(terminals.attach, token);
    stream.send({ frame: { case: 'open', value: { ...about, kind: AttachmentKind.AGENT } } });
    await stream.rest();
    throw stream.error;
  }

  describe('of who sees what', () => {
    it('answers for a terminal out of reach and for none with the same bytes but decision_id', async () => {
      const token = await harness.token([{ resource: { agent: 'coder' } }]);
      const answers = await Promise.all(
        ['other', 'nothing'].map(async (id) => {
          const error = await failureOf(get(token, id));
          const details = detailsOf(error);
          const decision = details.info?.metadata.decision_id ?? '';
          expect(decision).not.toBe('');
          const bytes = (error.metadata.get('grpc-status-details-bin')[0] as Buffer).toString(
            'latin1',
          );
          return {
            code: error.code,
            text: error.details,
            bytes: bytes.replace(decision, '*'),
            keys: Object.keys(error.metadata.getMap()).sort(),
          };
        }),
      );
      expect(answers[0]).toEqual(answers[1]);
      expect(answers[0]?.code).toBe(status.PERMISSION_DENIED);
    });

    const { readScrollback, getScreen, findText, send, readSend, cancelSend, close } =
      SessionService.method;
    const sendId = 's1';
    const size = { columns: 80, rows: 24 };
    const condition = { case: 'exit', value: true } as const;

    it.each<[string, (about: ReturnType<typeof ref>, token: string) => Promise<unknown>]>([
      ['GetTerminal', (about, by) => harness.unary(terminals.getTerminal, about, by)],
      ['Wait', (about, by) => harness.unary(terminals.wait, { ...about, condition }, by)],
      ['StartTerminal', (about, by) => harness.unary(terminals.startTerminal, about, by)],
      ['UpdateTerminal', (about, by) => harness.unary(terminals.updateTerminal, about, by)],
      ['DeleteTerminal', (about, by) => harness.unary(terminals.deleteTerminal, about, by)],
      ['Write', (about, by) => harness.unary(terminals.write, about, by)],
      ['Resize', (about, by) => harness.unary(terminals.resize, { ...about, size }, by)],
      ['Signal', (about, by) => harness.unary(terminals.signal, about, by)],
      ['Stop', (about, by) => harness.unary(terminals.stop, about, by)],
      ['Kill', (about, by) => harness.unary(terminals.kill, about, by)],
      ['Watch', (about, by) => harness.unary(terminals.watch, about, by)],
      ['ReadScrollback', (about, by) => harness.unary(readScrollback, about, by)],
      ['FindText', (about, by) => harness.unary(findText, { ...about, pattern: 'x' }, by)],
      ['GetScreen', (about, by) => harness.unary(getScreen, about, by)],
      ['Send', (about, by) => harness.unary(send, { ...about, text: 'x' }, by)],
      ['ReadSend', (about, by) => harness.unary(readSend, { ...about, sendId }, by)],
      ['CancelSend', (about, by) => harness.unary(cancelSend, { ...about, sendId }, by)],
      ['Close', (about, by) => harness.unary(close, about, by)],
      ['Attach', (about, by) => opened(about, by)],
    ])('asks store, policy and trail for both the same, by %s', async (_, call) => {
      const token = await harness.token([{ resource: { agent: 'coder' } }]);
      const traceOf = async (id: string) => {
        const trace: unknown[] = [];
        const decide = () => {
          trace.push('policy');
          return { permit: true, policyIds: [], hash: 'h' };
        };
        harness.policy = { hash: 'h', decide };
        harness.supervisor.onCall = ({ method }) => trace.push(method);
        harness.onIntent = ({ decision, reason }) => trace.push([decision, reason]);
        const { code, details } = await failureOf(call(ref(id), token));
        return { trace, code, details };
      };
      try {
        const unseen = await traceOf('other');
        expect(await traceOf('nothing')).toEqual(unseen);
        expect(unseen.trace).toEqual(['get', ['deny', 'GRANT_MISSING']]);
        expect(harness.outcomes).toEqual([]);
      } finally {
        harness.policy = grantsAlone;
        harness.supervisor.onCall = () => {};
        harness.onIntent = () => {};
      }
    });

    it.each(['SIGKILL', 'a signal', 'input that interrupts'])(
      'does so for %s too',
      async (what) => {
        const token = await harness.token([
          { actions: ['terminal.signal', 'terminal.write'], resource: { agent: 'coder' } },
        ]);
        const ask = (id: string) =>
          what === 'input that interrupts'
            ? harness.unary(terminals.write, { ...ref(id), data: Buffer.from('\x03') }, token)
            : harness.unary(
                terminals.signal,
                { ...ref(id), signal: what === 'SIGKILL' ? Signal.KILL : Signal.INT },
                token,
              );
        const [unseen, unknown] = await Promise.all(
          ['other', 'nothing'].map(async (id) => {
            const { message, metadata, code } = await failureOf(ask(id));
            const { info } = detailsOf({ metadata });
            return { message, code, action: info?.metadata.required_action };
          }),
        );
        expect(unseen).toEqual(unknown);
      },
    );

    it('says NOT_FOUND to who covers the name whatever its agent and session', async () => {
      expect(await reasonOf(get(await harness.token(), 'nothing'))).toEqual({
        code: status.NOT_FOUND,
        reason: 'TERMINAL_NOT_FOUND',
      });
    });

    it('decides on the stored tuple, not on what the id looks like', async () => {
      await harness.supervisor.add({
        id: 'terminal-coder-default' as Name,
        agent: 'reviewer' as Name,
      });
      const token = await harness.token([{ resource: { agent: 'coder' } }]);
      expect((await reasonOf(get(token, 'terminal-coder-default'))).reason).toBe('GRANT_MISSING');
    });

    it('takes the owner from the grants when they name one', async () => {
      const token = await harness.token();
      const reply = await harness.unary(terminals.getTerminal, { terminal: { id: 't1' } }, token);
      expect(reply.terminal?.ref?.owner).toBe('1000');
    });

    it('asks for the owner when the grants name none', async () => {
      const token = await harness.token([{ resource: { owner: '*' } }]);
      const call = harness.unary(terminals.getTerminal, { terminal: { id: 't1' } }, token);
      const { badRequest } = detailsOf(await failureOf(call));
      expect(badRequest?.fieldViolations.map(({ field }) => field)).toEqual(['owner']);
    });

    it.each(['', '../x', '%2e%2e', 'a/b', 'a\u0000b', 'x'.repeat(300), '.hidden', 'x.sock'])(
      'refuses the id %j as a field to who could act, and as out of reach to who could not',
      async (id) => {
        expect((await reasonOf(get(await harness.token(), id))).reason).toBe('FIELD_INVALID');
        const blind = await harness.token([{ actions: ['terminal.stop'] }]);
        expect((await reasonOf(get(blind, id))).reason).toBe('GRANT_MISSING');
        expect(harness.supervisor.calls).toEqual([]);
      },
    );
  });

  describe('in their order', () => {
    it('checks fields after authority', async () => {
      const wrong = { ...ref('t1'), size: { columns: 0, rows: 2000 } };
      const blind = await harness.token([{ actions: ['terminal.read'] }]);
      expect((await reasonOf(harness.unary(terminals.resize, wrong, blind))).reason).toBe(
        'GRANT_MISSING',
      );
      const error = await failureOf(harness.unary(terminals.resize, wrong, await harness.token()));
      expect(detailsOf(error).badRequest?.fieldViolations[0]?.field).toBe('size.columns');
    });

    it('asks the policy after the grants, and a policy that throws denies', async () => {
      const token = await harness.token();
      harness.policy = {
        hash: 'p1',
        decide: () => ({ permit: false, policyIds: ['f1'], hash: 'p1' }),
      };
      expect(await reasonOf(get(token))).toEqual({
        code: status.PERMISSION_DENIED,
        reason: 'POLICY_DENIED',
      });
      expect(harness.intents.at(-1)).toMatchObject({
        decision: 'deny',
        policy: { hash: 'p1', ids: ['f1'] },
      });
      harness.policy = {
        hash: 'p2',
        decide: () => {
          throw new Error('poisoned');
        },
      };
      expect((await reasonOf(get(token))).reason).toBe('POLICY_DENIED');
      harness.policy = { hash: 'p3', decide: () => ({ permit: true, policyIds: [], hash: 'p3' }) };
      await get(token);
    });

    it('does nothing that could not be put on record', async () => {
      harness.auditFailure = new GranttyError('AUDIT_UNAVAILABLE', 'the trail cannot be written');
      const call = harness.unary(terminals.kill, ref('t1'), await harness.token());
      expect(await reasonOf(call)).toEqual({
        code: status.UNAVAILABLE,
        reason: 'AUDIT_UNAVAILABLE',
      });
      harness.auditFailure = undefined;
      expect(harness.supervisor.effects).toEqual([]);
    });

    it('puts on record who asked, what for, and what came of it', async () => {
      await harness.unary(
        terminals.write,
        { ...ref('t1'), data: Buffer.from('secret') },
        await harness.token([{ id: 'w', actions: ['terminal.write'] }]),
      );
      const [intent] = harness.intents;
      expect(intent).toMatchObject({
        rpc: 'grantty.v1.TerminalService/Write',
        action: 'terminal.write',
        target: { owner: '1000', agent: 'coder', session: 'default', id: 't1' },
        decision: 'allow',
        grantId: 'w',
        inputBytes: 6,
        peer: { address: '127.0.0.1' },
        principal: { subject: 'alice' },
      });
      expect(JSON.stringify(intent)).not.toContain('secret');
      expect(harness.outcomes).toMatchObject([{ decisionId: intent?.decisionId, status: 'OK' }]);
    });

    it('puts a refusal on record with the id that the caller is told', async () => {
      const token = await harness.token([{ actions: ['terminal.stop'] }]);
      const error = await failureOf(get(token));
      expect(harness.intents).toMatchObject([
        {
          decision: 'deny',
          reason: 'GRANT_MISSING',
          decisionId: detailsOf(error).info?.metadata.decision_id,
          considered: [{ grantId: 'g0', why: 'action' }],
        },
      ]);
    });
  });

  describe('of what goes wrong', () => {
    it('tells nothing of a defect but that there was one, and logs its cause', async () => {
      harness.supervisor.failures.set('write', new Error('password is hunter2'));
      const call = harness.unary(
        terminals.write,
        { ...ref('t1'), data: Buffer.from('x') },
        await harness.token(),
      );
      const error = await failureOf(call);
      expect(error.code).toBe(status.INTERNAL);
      expect(error.details).not.toContain('hunter2');
      expect(error.metadata.get('grpc-status-details-bin')).toEqual([]);
      expect(harness.logged.join()).toContain('hunter2');
    });

    it('logs the cause of a failure and does not send it', async () => {
      const cause = new Error('/secret/path');
      harness.supervisor.failures.set(
        'write',
        new GranttyError('SUPERVISOR_UNAVAILABLE', 'not there', { cause }),
      );
      const call = harness.unary(
        terminals.write,
        { ...ref('t1'), data: Buffer.from('x') },
        await harness.token(),
      );
      const error = await failureOf(call);
      expect(error.code).toBe(status.UNAVAILABLE);
      expect(JSON.stringify(detailsOf(error).status.details.map(String))).not.toContain('/secret');
      expect(detailsOf(error).retry?.retryDelay).toBeDefined();
      expect(harness.logged.join()).toContain('/secret/path');
    });
  });
});
