/** Records of decisions: what they hold, and what never gets into them. */
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import {
  type IntentRecord,
  intentText,
  type OutcomeRecord,
  outcomeText,
  writeIntent,
  writeOutcome,
} from '../../src/audit/record.js';

const intent: IntentRecord = {
  decisionId: 'd1',
  timeMs: 1_735_689_600_000,
  principal: {
    issuer: 'https://issuer.test',
    subject: 'alice',
    clientId: 'orchestrator',
    jti: 'token-1',
    keyId: 'ed',
    actors: ['reviewer'],
    lineage: [{ issuer: 'https://issuer.test', jti: 'root' }],
  },
  peer: { address: '127.0.0.1', certificate: 'thumbprint' },
  rpc: 'grantty.v1.TerminalService/Attach',
  frame: 'input',
  action: 'terminal.write',
  target: { owner: '1000', agent: 'coder', session: 'default', id: 'terminal-coder-default' },
  decision: 'deny',
  reason: 'GRANT_MISSING',
  considered: [{ grantId: 'g1', why: 'signal_bytes' }],
  policy: { hash: 'grants-alone', ids: [] },
  inputBytes: 3,
};

const outcome: OutcomeRecord = {
  decisionId: 'd1',
  timeMs: 1_735_689_600_001,
  status: 'OK',
  firstSeq: 1,
  lastSeq: 9,
  outputBytes: 100,
};

const read = (written: unknown) => JSON.parse(JSON.stringify(written));

describe('records as they are written', () => {
  it('are an intent and its outcome, linked by the decision', () => {
    expect([read(writeIntent(intent, 'hash-of-g1')), read(writeOutcome(outcome))]).toEqual([
      {
        record: 'intent',
        decision_id: 'd1',
        time_ms: 1_735_689_600_000,
        principal: {
          iss: 'https://issuer.test',
          sub: 'alice',
          client_id: 'orchestrator',
          jti: 'token-1',
          kid: 'ed',
        },
        actors: ['reviewer'],
        lineage: [{ iss: 'https://issuer.test', jti: 'root' }],
        peer: { address: '127.0.0.1', certificate: 'thumbprint' },
        rpc: 'grantty.v1.TerminalService/Attach',
        frame: 'input',
        action: 'terminal.write',
        target: {
          owner: '1000',
          agent: 'coder',
          session: 'default',
          terminal: 'terminal-coder-default',
        },
        decision: 'deny',
        reason: 'GRANT_MISSING',
        grant_hash: 'hash-of-g1',
        considered: [{ grant: 'g1', why: 'signal_bytes' }],
        policy: { hash: 'grants-alone', ids: [] },
        input_bytes: 3,
      },
      {
        record: 'outcome',
        decision_id: 'd1',
        time_ms: 1_735_689_600_001,
        status: 'OK',
        first_seq: 1,
        last_seq: 9,
        output_bytes: 100,
      },
    ]);
  });

  it('says who knocked when nobody was authenticated', () => {
    const { principal: _, target: __, policy: ___, ...unknown } = intent;
    const written = read(writeIntent({ ...unknown, reason: 'TOKEN_INVALID', considered: [] }));
    expect(written).toMatchObject({
      reason: 'TOKEN_INVALID',
      peer: { address: '127.0.0.1' },
      considered: [],
    });
    expect(written).not.toHaveProperty('principal');
    expect(written).not.toHaveProperty('target');
  });

  it('have no member but their own, wherever it hangs', () => {
    const extra = { token: 'CANARY', data: 'CANARY', env: { A: 'CANARY' } };
    const written = [
      writeIntent({
        ...intent,
        ...extra,
        principal: Object.assign({}, intent.principal, extra as object),
        peer: { ...intent.peer, ...extra },
        target: Object.assign({}, intent.target, extra),
        considered: intent.considered.map((item) => ({ ...item, ...extra })),
        policy: Object.assign({}, intent.policy, extra),
      }),
      writeOutcome({ ...outcome, ...extra }),
    ];
    expect(JSON.stringify(written)).not.toContain('CANARY');
  });
});

describe('their text', () => {
  const some = (value: fc.Arbitrary<string>) => fc.option(value, { nil: undefined });
  const text = fc.oneof(
    fc.string(),
    fc.string({ unit: 'binary' }),
    fc.constantFrom('"', '\\', '","decision":"allow', '\n{"seq":1}', '\u2028', '\ud800'),
  );
  const number = fc.option(fc.nat(), { nil: undefined });
  const names = fc.array(text, { maxLength: 3 });
  const intents: fc.Arbitrary<IntentRecord> = fc.record({
    decisionId: text,
    timeMs: fc.nat(),
    principal: fc.option(
      fc.record({
        ...{ issuer: text, subject: text, clientId: text, jti: text, keyId: text, actors: names },
        lineage: fc.array(fc.record({ issuer: text, jti: text }), { maxLength: 2 }),
      }),
      { nil: undefined },
    ),
    peer: fc.record({ address: text, certificate: some(text) }),
    rpc: text,
    frame: fc.constantFrom(undefined, 'input' as const, 'open' as const),
    action: fc.constantFrom(undefined, 'terminal.read' as const),
    target: fc.option(
      fc.record(
        { owner: text, id: text, agent: text, session: text },
        { requiredKeys: ['owner', 'id'] },
      ),
      { nil: undefined },
    ),
    decision: fc.constantFrom('allow' as const, 'deny' as const),
    reason: fc.constantFrom(undefined, 'GRANT_MISSING' as const),
    grantId: some(text),
    considered: fc.array(fc.record({ grantId: text, why: fc.constant('action' as const) }), {
      maxLength: 2,
    }),
    policy: fc.option(fc.record({ hash: text, ids: names }), { nil: undefined }),
    inputBytes: number,
  });
  const outcomes = fc.record(
    {
      ...{ decisionId: text, timeMs: fc.nat(), status: text },
      reason: fc.constant('GRANT_MISSING' as const),
      ...{ firstSeq: fc.nat(), lastSeq: fc.nat(), inputBytes: fc.nat(), outputBytes: fc.nat() },
    },
    { requiredKeys: ['decisionId', 'timeMs', 'status'] },
  );

  it('is to the byte what JSON makes of them, whatever somebody calls himself', () => {
    fc.assert(
      fc.property(intents, some(text), (record, grantHash) => {
        expect(intentText(record, grantHash)).toBe(JSON.stringify(writeIntent(record, grantHash)));
      }),
    );
    fc.assert(
      fc.property(outcomes, (record) => {
        expect(outcomeText(record)).toBe(JSON.stringify(writeOutcome(record)));
      }),
    );
  });

  it('is the same when it is asked for again, and another for another principal', () => {
    const { principal } = intent;
    const other = { ...intent, ...(principal && { principal: { ...principal, subject: 'bob' } }) };
    for (const record of [intent, intent, other, intent]) {
      expect(intentText(record)).toBe(JSON.stringify(writeIntent(record)));
    }
  });
});
