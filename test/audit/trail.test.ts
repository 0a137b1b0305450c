/** Records of decisions: what they hold, and what never gets into them. */
import { describe, expect, it } from '@jest/globals';
import pino from 'pino';
import { type IntentRecord, type OutcomeRecord, writeIntent } from '../../src/audit/record.js';
import { loggerTrail } from '../../src/audit/trail.js';

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

function collect() {
  const lines: string[] = [];
  const logger = pino({ base: null }, { write: (line: string) => void lines.push(line) });
  return { trail: loggerTrail(logger), audits: () => lines.map((line) => JSON.parse(line).audit) };
}

describe('the trail in the log', () => {
  it('has one line for an intent and one for its outcome, linked by the decision', async () => {
    const { trail, audits } = collect();
    await trail.intent(intent);
    trail.outcome(outcome);
    expect(audits()).toEqual([
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
    const written = JSON.parse(
      JSON.stringify(writeIntent({ ...unknown, reason: 'TOKEN_INVALID', considered: [] })),
    );
    expect(written).toMatchObject({
      reason: 'TOKEN_INVALID',
      peer: { address: '127.0.0.1' },
      considered: [],
    });
    expect(written).not.toHaveProperty('principal');
    expect(written).not.toHaveProperty('target');
  });

  it('writes no member that a record does not have, wherever it hangs', async () => {
    const { trail, audits } = collect();
    const extra = { token: 'CANARY', data: 'CANARY', env: { A: 'CANARY' } };
    await trail.intent({
      ...intent,
      ...extra,
      principal: Object.assign({}, intent.principal, extra),
      peer: { ...intent.peer, ...extra },
      target: Object.assign({}, intent.target, extra),
      considered: intent.considered.map((item) => ({ ...item, ...extra })),
      policy: Object.assign({}, intent.policy, extra),
    });
    trail.outcome({ ...outcome, ...extra });
    expect(audits()).toHaveLength(2);
    expect(JSON.stringify(audits())).not.toContain('CANARY');
  });
});
