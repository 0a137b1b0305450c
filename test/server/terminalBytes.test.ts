/** Terminals encoded piece by piece, held against the generated encoder. */

import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type { Name } from '../../src/core/names.js';
import type { TerminalRecord } from '../../src/core/terminal.js';
import { TerminalSchema } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { encodeTerminal } from '../../src/server/terminalBytes.js';
import { toTerminal } from '../../src/server/wire.js';
import type { AttachmentInfo, TerminalSnapshot } from '../../src/supervisor/api.js';

const record: TerminalRecord = {
  ...{ owner: '1000' as Name, agent: 'a' as Name, session: 's' as Name, id: 't' as Name },
  ...{ cwd: '/', command: ['sh'], state: 'running', createdAt: 1, updatedAt: 2, uid: 'u' },
  ...{ instance: 1, size: { cols: 80, rows: 24 }, title: '', labels: {}, backend: '', name: '' },
  ...{ onExit: 'leave', logEpoch: 1 },
};
const attached: AttachmentInfo = {
  ...({ attachmentId: 'x', kind: 'agent', mode: 'read' } as const),
  ...{ subject: 'alice', since: 5 },
};

function expectSame(snapshot: TerminalSnapshot): void {
  const bytes = encodeTerminal(snapshot, snapshot.attachments);
  expect(fromBinary(TerminalSchema, bytes)).toEqual(toTerminal(snapshot, snapshot.attachments));
}

describe('a terminal in pieces', () => {
  it('is the same message, whatever its seqs', () => {
    const seq = fc.nat(Number.MAX_SAFE_INTEGER);
    fc.assert(
      fc.property(seq, seq, (firstSeq, nextSeq) => {
        expectSame({ record, firstSeq, nextSeq, attachments: [] });
      }),
    );
  });

  it('is the same message with attachments, and while its output is held back', () => {
    const seqs = { record, firstSeq: 1, nextSeq: 300 };
    expectSame({ ...seqs, attachments: [attached] });
    expectSame({ ...seqs, attachments: [], paused: 'log-quota' });
  });
});
