import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { sizeDelimitedPeek } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { errorReasons, GranttyError } from '../../../src/core/errors.js';
import type { TerminalEvent } from '../../../src/core/event.js';
import type { Name } from '../../../src/core/names.js';
import { type TerminalRecord, terminalStates } from '../../../src/core/terminal.js';
import {
  CreateSchema,
  ReplySchema,
  RequestSchema,
} from '../../../src/gen/internal/grantty/internal/v1/control_pb.js';
import {
  InputAckSchema,
  type InputChunk,
  InputChunkSchema,
} from '../../../src/gen/internal/grantty/internal/v1/input_pb.js';
import { OutputFrameSchema } from '../../../src/gen/internal/grantty/internal/v1/output_pb.js';
import {
  FailureSchema,
  SnapshotSchema,
} from '../../../src/gen/internal/grantty/internal/v1/records_pb.js';
import type { CreateSpec, LiveItem, TerminalSnapshot } from '../../../src/supervisor/api.js';
import { decodeItem, encodeItem, readOutput } from '../../../src/supervisor/socket/eventCodec.js';
import { decodeFailure, encodeFailure } from '../../../src/supervisor/socket/failureCodec.js';
import {
  decodeGet,
  decodeUnchanged,
  encodeGet,
  encodeUnchanged,
} from '../../../src/supervisor/socket/getCodec.js';
import {
  decodeAck,
  decodeChunk,
  encodeChunk,
  encodePlainAck,
} from '../../../src/supervisor/socket/inputCodec.js';
import { MAX_MESSAGE_BYTES } from '../../../src/supervisor/socket/protocol.js';
import { decodeSnapshot, encodeSnapshot } from '../../../src/supervisor/socket/recordCodec.js';
import { decodeCreate, encodeCreate } from '../../../src/supervisor/socket/specCodec.js';
import { recordingLog } from './fakeSupervisor.js';

const anyName = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_+-]{0,20}$/).map((text) => text as Name);
const text = fc.string({ unit: 'binary' });
const count = fc.nat(Number.MAX_SAFE_INTEGER);
/** A plain object, as the code under test makes them. */
const whole = <T>(model: { [Key in keyof T]: fc.Arbitrary<T[Key]> }) =>
  fc.record(model, { noNullPrototype: true });
const size = whole({ cols: fc.integer({ min: 1, max: 1000 }), rows: fc.nat(1000) });
// A map loses a key of this name, as any plain object does.
const map = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  text,
  { noNullPrototype: true },
);
const request = whole({ key: text, bodyHash: text });
const createdBy = whole({ issuer: text, subject: text, grants: fc.array(text) });
const exit = fc.record(
  { exitCode: fc.nat(255), signal: text, reason: text, survivors: fc.nat(100) },
  { requiredKeys: [], noNullPrototype: true },
);
const onExit = fc.constantFrom('leave' as const, 'sweep' as const);

const record: fc.Arbitrary<TerminalRecord> = fc.record(
  {
    owner: anyName,
    agent: anyName,
    session: anyName,
    id: anyName,
    cwd: text,
    command: fc.array(text),
    state: fc.constantFrom(...terminalStates),
    socket: text,
    createdAt: count,
    uid: text,
    instance: fc.nat(1000),
    pid: fc.nat(4_194_304),
    marks: whole({ nonce: text, startTime: count, bootId: text }),
    size,
    title: text,
    labels: map,
    backend: text,
    name: text,
    onExit,
    createdBy,
    exit,
    exitedAt: count,
    updatedAt: count,
    logEpoch: fc.nat(1000),
    request,
    logRewinds: fc.array(whole({ epoch: fc.nat(1000), lastSeq: count }), { minLength: 1 }),
  },
  {
    requiredKeys: [
      ...(['owner', 'agent', 'session', 'id', 'cwd', 'command', 'state', 'createdAt'] as const),
      ...(['uid', 'instance', 'size', 'title', 'labels', 'backend', 'name', 'onExit'] as const),
      ...(['updatedAt', 'logEpoch'] as const),
    ],
    noNullPrototype: true,
  },
);

const snapshot: fc.Arbitrary<TerminalSnapshot> = fc.record(
  {
    record,
    firstSeq: count,
    nextSeq: count,
    attachments: fc.array(
      fc.record(
        {
          attachmentId: text,
          kind: fc.constantFrom('agent' as const, 'human' as const, 'service' as const),
          subject: text,
          actor: text,
          since: count,
          mode: fc.constantFrom('read' as const, 'read-write' as const),
        },
        {
          requiredKeys: ['attachmentId', 'kind', 'subject', 'since', 'mode'],
          noNullPrototype: true,
        },
      ),
    ),
    paused: fc.constantFrom('log-unwritable' as const, 'log-quota' as const),
  },
  { requiredKeys: ['record', 'firstSeq', 'nextSeq', 'attachments'], noNullPrototype: true },
);

const createSpec: fc.Arbitrary<CreateSpec> = fc.record(
  {
    tuple: whole({ owner: anyName, agent: anyName, session: anyName, id: anyName }),
    command: fc.array(text),
    cwd: text,
    cwdUnder: fc.array(text),
    env: map,
    size,
    title: text,
    labels: map,
    name: text,
    backend: text,
    onExit,
    createdBy,
    request,
  },
  {
    requiredKeys: [
      ...(['tuple', 'command', 'cwd', 'env', 'size', 'title', 'labels'] as const),
      ...(['name', 'backend', 'onExit'] as const),
    ],
    noNullPrototype: true,
  },
);

const event: fc.Arbitrary<TerminalEvent> = fc.oneof(
  fc.record(
    {
      type: fc.constant('pty.output' as const),
      seq: count,
      timeMicros: count,
      data: fc.uint8Array({ minLength: 1, maxLength: 200 }),
      size,
      instance: fc.nat(9),
    },
    { requiredKeys: ['type', 'seq', 'timeMicros', 'data'], noNullPrototype: true },
  ),
  fc
    .tuple(whole({ seq: count, timeMicros: count }), exit)
    .map(([at, status]) => ({ type: 'process.exit' as const, ...at, ...status })),
);

describe('what crosses the supervisor’s socket', () => {
  it('brings records over whole, absent properties absent', () => {
    fc.assert(
      fc.property(snapshot, (before) => {
        const bytes = toBinary(SnapshotSchema, create(SnapshotSchema, encodeSnapshot(before)));
        expect(decodeSnapshot(fromBinary(SnapshotSchema, bytes))).toStrictEqual(before);
      }),
    );
  });

  it('brings what is to be created over whole, an empty list not the same as none', () => {
    fc.assert(
      fc.property(createSpec, (before) => {
        const bytes = toBinary(CreateSchema, create(CreateSchema, encodeCreate(before)));
        expect(decodeCreate(fromBinary(CreateSchema, bytes))).toStrictEqual(before);
      }),
    );
  });

  it('brings events over whole and in order, in messages that fit', () => {
    fc.assert(
      fc.property(fc.array(event, { minLength: 1 }), (events) => {
        const after = [...encodeItem({ kind: 'events', events })].flatMap((parts) => {
          const item = decodeItem(fromBinary(OutputFrameSchema, Buffer.concat(parts)));
          return item?.kind === 'events' ? item.events : [];
        });
        expect(after.map(plain)).toStrictEqual(events.map(plain));
      }),
    );
    const data = Buffer.alloc(65_536, 1);
    const flood = Array.from({ length: 70 }, (_, index) => ({
      type: 'pty.output' as const,
      seq: index + 1,
      timeMicros: 0,
      data,
    }));
    const frames = [...encodeItem({ kind: 'events', events: flood })];
    expect(frames.length).toBe(70);
    for (const [head, bytes] of frames) {
      expect(head.length + bytes.length).toBeLessThan(MAX_MESSAGE_BYTES);
      expect(bytes).toBe(data);
    }
  });

  it('brings errors over whole, but for their cause', () => {
    const violation = whole({ field: text, description: text });
    const details = fc.record(
      { metadata: map, violations: fc.array(violation), retryAfterMs: count },
      { requiredKeys: [], noNullPrototype: true },
    );
    fc.assert(
      fc.property(fc.constantFrom(...errorReasons), text, details, (reason, message, rest) => {
        const before = new GranttyError(reason, message, { ...rest, cause: new Error('inside') });
        const bytes = toBinary(FailureSchema, encodeFailure(before, recordingLog()));
        const after = decodeFailure(fromBinary(FailureSchema, bytes));
        expect({ ...after }).toStrictEqual({ ...before });
        expect(after.message).toBe(before.message);
        expect(after.cause).toBeUndefined();
      }),
    );
  });

  it('tells nothing of what is no error of ours but that there was one, and logs it', () => {
    const log = recordingLog();
    const secret = new TypeError('token abc');
    const after = decodeFailure(encodeFailure(secret, log));
    expect(after.reason).toBe('SUPERVISOR_UNAVAILABLE');
    expect(after.message).not.toContain('abc');
    expect(log.lines).toEqual([
      { level: 'error', fields: { err: secret }, message: 'the supervisor failed' },
    ]);
  });
});

/** Bytes as an array, whatever the class of the view. */
function plain(event: TerminalEvent): object {
  return event.type === 'pty.output' ? { ...event, data: [...event.data] } : event;
}

describe('an output that is read by hand', () => {
  const byGenerated = (body: Uint8Array) => decodeItem(fromBinary(OutputFrameSchema, body));
  const plainItem = (item: LiveItem | undefined) =>
    item?.kind === 'events' ? item.events.map(plain) : item;

  it('is what the generated decoder reads, and other messages are left to it', () => {
    fc.assert(
      fc.property(event, (one) => {
        for (const parts of encodeItem({ kind: 'events', events: [one] })) {
          const body = Buffer.concat(parts);
          const item = readOutput(body);
          const isUsual = one.type === 'pty.output' && one.size === undefined;
          expect(item !== undefined).toBe(isUsual);
          if (item) expect(plainItem(item)).toEqual(plainItem(byGenerated(body)));
        }
      }),
    );
    for (const parts of [...encodeItem({ kind: 'resized', size: { cols: 1, rows: 2 } })]) {
      expect(readOutput(Buffer.concat(parts))).toBeUndefined();
    }
    expect(readOutput(Buffer.alloc(0))).toBeUndefined();
  });

  it('is never read differently when its bytes are cut or changed', () => {
    fc.assert(
      fc.property(event, fc.nat(400), fc.nat(255), (one, at, byte) => {
        for (const parts of encodeItem({ kind: 'events', events: [one] })) {
          const whole = Buffer.concat(parts);
          const changed = Buffer.from(whole);
          changed[at % whole.length] = byte;
          for (const body of [changed, whole.subarray(0, at % whole.length)]) {
            const item = readOutput(body);
            if (item) expect(plainItem(item)).toEqual(plainItem(byGenerated(body)));
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('input that is written by hand', () => {
  it('is what the generated decoder reads, whatever the lease is called', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
        fc.uint8Array({ maxLength: 300 }),
        fc.oneof(text, fc.string({ minLength: 120, maxLength: 200 })),
        count,
        (number, data, id, notAfter) => {
          const chunk = fromBinary(
            InputChunkSchema,
            Buffer.concat(encodeChunk(number, data, { id, notAfter })),
          );
          expect(chunk).toMatchObject({
            number,
            leaseId: Buffer.from(id).toString(),
            notAfter,
            end: false,
          });
          expect([...chunk.data]).toEqual([...data]);
        },
      ),
    );
  });
});

describe('input that is read by hand', () => {
  const chunk = fc
    .record({
      number: count,
      data: fc.uint8Array({ maxLength: 300 }),
      leaseId: text,
      notAfter: count,
    })
    .chain((fields) => fc.boolean().map((end) => ({ ...fields, end })));
  const plain = ({ data, ...fields }: InputChunk) => ({ ...fields, data: [...data] });

  it('is what the generated decoder reads, however it was written', () => {
    fc.assert(
      fc.property(chunk, (fields) => {
        const bodies = [
          Buffer.concat(
            encodeChunk(fields.number, fields.data, {
              id: fields.leaseId,
              notAfter: fields.notAfter,
            }),
          ),
          Buffer.from(toBinary(InputChunkSchema, create(InputChunkSchema, fields))),
        ];
        for (const body of bodies) {
          expect(plain(decodeChunk(body))).toEqual(plain(fromBinary(InputChunkSchema, body)));
        }
      }),
    );
  });

  it('is refused by both or by none when its bytes are cut or changed', () => {
    const outcome = (decode: () => InputChunk) => {
      try {
        return plain(decode());
      } catch {
        return 'refused';
      }
    };
    fc.assert(
      fc.property(
        chunk,
        fc.nat(400),
        fc.nat(255),
        ({ number, data, leaseId, notAfter }, at, byte) => {
          const whole = Buffer.concat(encodeChunk(number, data, { id: leaseId, notAfter }));
          const changed = Buffer.from(whole);
          changed[at % whole.length] = byte;
          for (const body of [changed, whole.subarray(0, at % whole.length)]) {
            expect(outcome(() => decodeChunk(body))).toEqual(
              outcome(() => fromBinary(InputChunkSchema, body)),
            );
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it('is acknowledged alike by both codecs', () => {
    fc.assert(
      fc.property(count, count, count, fc.boolean(), (through, taken, failed, ended) => {
        const plainAck = encodePlainAck(through, taken);
        const expected = create(InputAckSchema, { through, taken });
        expect(fromBinary(InputAckSchema, plainAck)).toEqual(expected);
        expect(decodeAck(plainAck)).toEqual(expected);
        const full = create(InputAckSchema, { through, taken, failed, ended });
        expect(decodeAck(Buffer.from(toBinary(InputAckSchema, full)))).toEqual(full);
      }),
    );
  });
});

describe('the question for a terminal, and the answer that nothing has changed', () => {
  const id = fc.integer({ min: 1, max: 0xffff_ffff });

  it('ask and answer what the generated codec does', () => {
    const key = fc.record(
      { owner: anyName, id: anyName, uid: text },
      { requiredKeys: ['owner', 'id'], noNullPrototype: true },
    );
    fc.assert(
      fc.property(id, key, count, (number, asked, known) => {
        const bytes = encodeGet(number, asked, known);
        const { size: length, offset } = sizeDelimitedPeek(bytes);
        expect(length).toBe(bytes.length - (offset ?? 0));
        const value = { key: asked, known };
        expect(fromBinary(RequestSchema, bytes.subarray(offset ?? 0))).toEqual(
          fromBinary(
            RequestSchema,
            toBinary(
              RequestSchema,
              create(RequestSchema, { id: number, call: { case: 'get', value } }),
            ),
          ),
        );
      }),
    );
    fc.assert(
      fc.property(id, record, count, count, count, (number, known, firstSeq, nextSeq, revision) => {
        const snapshot = { record: known, firstSeq, nextSeq, attachments: [] };
        const bytes = encodeUnchanged(number, snapshot, revision) ?? Buffer.alloc(0);
        const { size: length, offset } = sizeDelimitedPeek(bytes);
        expect(length).toBe(bytes.length - (offset ?? 0));
        const value = { firstSeq, nextSeq, revision };
        const result = { case: 'snapshot', value } as const;
        const body = bytes.subarray(offset ?? 0);
        expect(fromBinary(ReplySchema, body)).toEqual(create(ReplySchema, { id: number, result }));
        expect(decodeUnchanged(body)).toEqual({ case: 'unchanged', id: number, ...value });
      }),
    );
  });

  it('is read as the generated decoder reads it, whatever became of its bytes on the way', () => {
    const key = fc.record(
      { owner: anyName, id: anyName, uid: fc.uuid() },
      { requiredKeys: ['owner', 'id'], noNullPrototype: true },
    );
    const change = fc.option(fc.tuple(fc.nat(250), fc.nat(255)));
    let ownRead = 0;
    fc.assert(
      fc.property(id, key, count, change, fc.nat(250), (number, asked, known, changed, cut) => {
        const bytes = encodeGet(number, asked, known);
        const body = Buffer.from(bytes.subarray(sizeDelimitedPeek(bytes).offset ?? 0));
        expect(decodeGet(body)).toEqual({ id: number, key: asked, known });
        if (changed !== null) body[changed[0] % body.length] = changed[1];
        for (const read of [body, body.subarray(0, cut)]) {
          const quick = decodeGet(read);
          if (quick === undefined) continue;
          ownRead += 1;
          const { id: sent, call } = fromBinary(RequestSchema, read);
          if (call.case !== 'get' || !call.value.key) throw new Error('no get');
          const { owner, id: name, uid } = call.value.key;
          const names = { owner, id: name, ...(uid !== undefined && { uid }) };
          expect(quick).toEqual({ id: sent, key: names, known: call.value.known });
        }
      }),
    );
    expect(ownRead).toBeGreaterThan(50);
  });

  it('is left to the generated codec where there is more to say', () => {
    for (const owner of ['ö', 'o'.repeat(128)]) {
      const bytes = encodeGet(1, { owner: owner as Name, id: 't' as Name }, 0);
      expect(decodeGet(bytes.subarray(sizeDelimitedPeek(bytes).offset ?? 0))).toBeUndefined();
    }
    expect(decodeGet(Buffer.alloc(0))).toBeUndefined();
    // An id of six bytes, the last of which looks like what follows an id of five.
    const question = encodeGet(1, { owner: 'o' as Name, id: 't' as Name }, 0);
    const rest = question.subarray((sizeDelimitedPeek(question).offset ?? 0) + 2);
    const id = [0x08, 0x80, 0x80, 0x80, 0x80, 0x80];
    expect(decodeGet(Buffer.from([...id, ...rest]))).toBeUndefined();
    const snapshot = { record: {} as TerminalRecord, firstSeq: 1, nextSeq: 2, attachments: [] };
    expect(encodeUnchanged(1, { ...snapshot, paused: 'log-quota' }, 3)).toBeUndefined();
    const others = [
      { case: 'snapshot', value: { firstSeq: 1, nextSeq: 2, paused: 'log-quota', revision: 3 } },
      { case: 'snapshot', value: { firstSeq: 1, nextSeq: 2 } },
      { case: 'done', value: {} },
    ] as const;
    for (const result of others) {
      const reply = create(ReplySchema, { id: 1, result });
      expect(decodeUnchanged(toBinary(ReplySchema, reply))).toBeUndefined();
    }
    expect(decodeUnchanged(new Uint8Array())).toBeUndefined();
  });
});
