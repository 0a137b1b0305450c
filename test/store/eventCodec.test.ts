import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { TerminalEvent } from '../../src/core/event.js';
import { MAX_EVENT_DATA_BYTES } from '../../src/core/limits.js';
import {
  decodeEvent,
  decodeLine,
  encodeEvent,
  encodeEvents,
  MAX_LINE_BYTES,
} from '../../src/store/eventCodec.js';
import { parseEventLine } from '../../src/store/eventJson.js';
import { readOutputLine } from '../../src/store/outputLine.js';
import { arbitraryEvent, arbitraryLog, output, plain } from './events.js';

interface Vector {
  readonly name: string;
  readonly line?: string;
  readonly line_b64?: string;
}

interface Accepted extends Vector {
  readonly canonical?: boolean;
  readonly event: Readonly<Record<string, string | number>>;
}

const vectors: {
  readonly accepted: readonly Accepted[];
  readonly skipped: readonly (Vector & { readonly seq: number })[];
  readonly refused: readonly Vector[];
} = JSON.parse(readFileSync(new URL('../vectors/events/lines.json', import.meta.url), 'utf8'));

function bytesOf({ line, line_b64 }: Vector): Buffer {
  return line === undefined ? Buffer.from(line_b64 ?? '', 'base64') : Buffer.from(line);
}

/** An event in the words of the vectors. */
function asVector(event: TerminalEvent): object {
  const { seq, timeMicros, type, instance } = event;
  const common = { seq, time_us: timeMicros, type, ...(instance !== undefined && { instance }) };
  if (event.type === 'pty.output') {
    return { ...common, data_hex: Buffer.from(event.data).toString('hex'), ...event.size };
  }
  const { exitCode, signal, reason, survivors } = event;
  return {
    ...common,
    ...(exitCode !== undefined && { exit_code: exitCode }),
    ...(signal !== undefined && { signal }),
    ...(reason !== undefined && { reason }),
    ...(survivors !== undefined && { survivors }),
  };
}

describe('the vectors of event lines', () => {
  it.each(vectors.accepted)('accepts $name', (vector) => {
    const event = decodeEvent(bytesOf(vector));
    expect(asVector(event)).toEqual(vector.event);
    if (vector.canonical) expect(encodeEvent(event).toString()).toBe(`${vector.line}\n`);
  });

  it.each(vectors.skipped)('counts the seq of $name and gives no event', (vector) => {
    const bytes = bytesOf(vector);
    expect(decodeLine(bytes, 0, bytes.length)).toMatchObject({ type: 'unknown', seq: vector.seq });
    expect(() => decodeEvent(bytes)).toThrow(SyntaxError);
  });

  it.each(vectors.refused)('refuses $name', (vector) => {
    const bytes = bytesOf(vector);
    expect(() => decodeEvent(bytes)).toThrow(SyntaxError);
    expect(() => decodeLine(bytes, 0, bytes.length)).toThrow(SyntaxError);
  });
});

describe('encoding and decoding', () => {
  it('gives back every event as it was', () => {
    fc.assert(
      fc.property(arbitraryEvent, (event) => {
        expect(plain(decodeEvent(encodeEvent(event)))).toEqual(plain(event));
      }),
      { numRuns: 2_000 },
    );
  });

  it('reads our own outputs without the JSON parser, and reads the same by it', () => {
    fc.assert(
      fc.property(arbitraryEvent, (event) => {
        const line = encodeEvent(event).subarray(0, -1);
        const quick = readOutputLine(line, 0, line.length);
        expect(quick && plain(quick)).toEqual(
          event.type === 'pty.output' ? plain(event) : undefined,
        );
        expect(plain(parseEventLine(line) as TerminalEvent)).toEqual(plain(event));
      }),
      { numRuns: 1_000 },
    );
  });

  it('never reads quickly what the JSON parser refuses or reads otherwise', () => {
    fc.assert(
      fc.property(
        arbitraryEvent,
        fc.nat(),
        fc.oneof(fc.constantFrom(0x2d, 0x22, 0x30, 0x3d, 0x2c, 0x5c, 0x7d), fc.nat(255)),
        (event, at, byte) => {
          const line = encodeEvent(event).subarray(0, -1);
          line[at % line.length] = byte;
          const quick = readOutputLine(line, 0, line.length);
          if (quick) expect(plain(parseEventLine(line) as TerminalEvent)).toEqual(plain(quick));
        },
      ),
      { numRuns: 5_000 },
    );
  });

  it('gives the same bytes for events alone and together', () => {
    fc.assert(
      fc.property(arbitraryLog(0, 12), (events) => {
        expect(encodeEvents(events)).toEqual(Buffer.concat(events.map(encodeEvent)));
      }),
    );
  });

  it('holds the largest event in a line within the bound, and refuses a larger or empty one', () => {
    const largest = {
      ...output(1, Buffer.alloc(MAX_EVENT_DATA_BYTES, 0xff)),
      seq: Number.MAX_SAFE_INTEGER,
      timeMicros: Number.MAX_SAFE_INTEGER,
      size: { cols: 1000, rows: 1000 },
    };
    const line = encodeEvent(largest);
    expect(line.length).toBeLessThan(MAX_LINE_BYTES - 1024);
    expect(decodeEvent(line)).toEqual(largest);
    expect(() => encodeEvent(output(1, Buffer.alloc(MAX_EVENT_DATA_BYTES + 1)))).toThrow(
      RangeError,
    );
    expect(() => encodeEvent(output(1, Buffer.alloc(0)))).toThrow(RangeError);
    const larger = Buffer.from(
      `{"seq":1,"ts":1,"type":"pty.output","data_b64":"${Buffer.alloc(MAX_EVENT_DATA_BYTES + 1).toString('base64')}"}`,
    );
    expect(() => decodeEvent(larger)).toThrow(SyntaxError);
  });

  it.each([0, -1, 1.5, Number.NaN, 2 ** 53])('refuses to write seq %p', (seq) => {
    expect(() => encodeEvent({ ...output(1), seq })).toThrow(RangeError);
  });

  it('reads out of the middle of a larger buffer and leaves it alone', () => {
    const line = encodeEvent(output(5, 'hello'));
    const around = Buffer.concat([Buffer.from('xx'), line, Buffer.from('yy')]);
    const before = Buffer.from(around);
    const event = decodeLine(around, 2, 2 + line.length - 1);
    expect(event).toEqual(output(5, 'hello'));
    around.fill(0);
    expect(event).toEqual(output(5, 'hello'));
    expect(before.subarray(2, 2 + line.length)).toEqual(line);
  });
});
