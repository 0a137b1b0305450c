/** Events for tests: by hand, and arbitrary ones. */
import fc from 'fast-check';
import type { ExitEvent, OutputEvent, TerminalEvent } from '../../src/core/event.js';

export function output(seq: number, data: Uint8Array | string = `line ${seq}\r\n`): OutputEvent {
  return { type: 'pty.output', seq, timeMicros: timeOf(seq), data: Buffer.from(data) };
}

export function exit(seq: number, exitCode = 0): ExitEvent {
  return { type: 'process.exit', seq, timeMicros: timeOf(seq), exitCode };
}

export function outputs(from: number, through: number): OutputEvent[] {
  return Array.from({ length: through - from + 1 }, (_, i) => output(from + i));
}

function timeOf(seq: number): number {
  return 1_735_689_600_000_000 + seq * 1_001;
}

const instance = fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined });
const timeMicros = fc.oneof(
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: 0, max: 2 ** 31 }).map((seconds) => seconds * 1_000_000),
);
const cells = fc.integer({ min: 1, max: 1000 });

export function arbitraryOutput(maxBytes = 300): fc.Arbitrary<TerminalEvent> {
  return fc
    .record({
      timeMicros,
      data: fc.uint8Array({ minLength: 1, maxLength: maxBytes, size: 'max' }),
      size: fc.option(fc.record({ cols: cells, rows: cells }), { nil: undefined }),
      instance,
    })
    .map((fields) => withSeq({ type: 'pty.output', ...fields }, 1));
}

export const arbitraryExit: fc.Arbitrary<TerminalEvent> = fc
  .record({
    timeMicros,
    exitCode: fc.option(fc.integer({ min: 0, max: 255 }), { nil: undefined }),
    signal: fc.option(fc.constantFrom('SIGTERM', 'SIGKILL'), { nil: undefined }),
    reason: fc.option(fc.string({ unit: 'binary' }), { nil: undefined }),
    survivors: fc.option(fc.nat(), { nil: undefined }),
    instance,
  })
  .map((fields) => withSeq({ type: 'process.exit', ...fields }, 1));

export const arbitraryEvent = fc.oneof(
  { weight: 4, arbitrary: arbitraryOutput() },
  { weight: 1, arbitrary: arbitraryExit },
);

/** Events in the order of a log: seqs from `first` on. */
export function arbitraryLog(minLength: number, maxLength: number, first = 1) {
  return fc
    .array(arbitraryEvent, { minLength, maxLength })
    .map((events) => events.map((event, i) => withSeq(event, first + i)));
}

/** The event with this seq and without the properties that are undefined. */
export function withSeq(event: object, seq: number): TerminalEvent {
  const members = Object.entries({ ...event, seq }).filter(([, value]) => value !== undefined);
  return Object.fromEntries(members) as unknown as TerminalEvent;
}

/** An event in a form that two readings of the same can be compared in. */
export function plain(event: TerminalEvent): object {
  return event.type === 'pty.output'
    ? { ...event, data: Buffer.from(event.data).toString('hex') }
    : { ...event };
}
