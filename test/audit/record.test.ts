/** Records of decisions: what they hold, and what never gets into them. */
import { describe, expect, it } from '@jest/globals';
import {
  type IntentRecord,
  type OutcomeRecord,
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
