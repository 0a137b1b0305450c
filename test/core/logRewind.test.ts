import fc from 'fast-check';
import {
  addRewind,
  isRewindHistory,
  type LogRewind,
  survivingSeq,
} from '../../src/core/logRewind.js';

/** A log whose events can be told apart, and its power cuts. */
interface Model {
  readonly events: number[];
  logEpoch: number;
  logRewinds: readonly LogRewind[];
}

interface Step {
  readonly prints: number;
  /** Events that the power cut at the end of the step takes. */
  readonly loses: number;
}

/** Runs the steps; gives the log at the end and, for each epoch, what it had at its longest. */
function run(steps: readonly Step[]): { log: Model; seen: Map<number, readonly number[]> } {
  const log: Model = { events: [], logEpoch: 1, logRewinds: [] };
  const seen = new Map<number, readonly number[]>();
  let nextEvent = 0;
  for (const { prints, loses } of steps) {
    for (let i = 0; i < prints; i += 1) log.events.push(nextEvent++);
    seen.set(log.logEpoch, [...log.events]);
    log.events.splice(Math.max(0, log.events.length - loses));
    const rewind = { epoch: log.logEpoch, lastSeq: log.events.length };
    log.logRewinds = addRewind(log.logRewinds, rewind);
    log.logEpoch += 1;
  }
  log.events.push(nextEvent);
  return { log, seen };
}

/** How many events the two begin with alike. */
function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const end = a.findIndex((event, index) => b[index] !== event);
  return end === -1 ? a.length : end;
}

const steps = (maxLength: number) =>
  fc.array(fc.record({ prints: fc.nat(6), loses: fc.nat(8) }), { minLength: 1, maxLength });

describe('what survived of a log', () => {
  it('is exactly what the log has in common with what an earlier epoch had', () => {
    fc.assert(
      fc.property(steps(15), (cuts) => {
        const { log, seen } = run(cuts);
        for (const [epoch, events] of seen) {
          const surviving = Math.min(survivingSeq(log, epoch), events.length);
          expect(surviving).toBe(commonPrefix(events, log.events));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('is never said to be more than it is, and in a bounded list, after any number of power cuts', () => {
    fc.assert(
      fc.property(steps(80), (cuts) => {
        const { log, seen } = run(cuts);
        expect(log.logRewinds.length).toBeLessThanOrEqual(16);
        for (const [epoch, events] of seen) {
          const surviving = Math.min(survivingSeq(log, epoch), events.length);
          expect(surviving).toBeLessThanOrEqual(commonPrefix(events, log.events));
        }
      }),
      { numRuns: 300 },
    );
  });

  it('is all of the present epoch, and nothing of one that is not known', () => {
    const log = { logEpoch: 3, logRewinds: [{ epoch: 2, lastSeq: 7 }] };
    expect(survivingSeq(log, 3)).toBe(Number.POSITIVE_INFINITY);
    expect(survivingSeq(log, 4)).toBe(0);
    expect(survivingSeq({ logEpoch: 3 }, 2)).toBe(0);
  });
});

describe('a list of rewinds', () => {
  it('is a history whatever rewinds made it', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { maxLength: 40 }), (seqs) => {
        let rewinds: readonly LogRewind[] = [];
        for (const [at, lastSeq] of seqs.entries()) {
          rewinds = addRewind(rewinds, { epoch: at + 1, lastSeq });
        }
        expect(isRewindHistory(rewinds, seqs.length + 1)).toBe(true);
      }),
    );
  });
});
