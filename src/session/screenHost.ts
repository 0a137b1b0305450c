/** The emulators and scanners of one worker: takes orders, posts answers. */

import { Emulator } from './emulator.js';
import { errorFailure } from './failure.js';
import { findText } from './findText.js';
import { readPage } from './linePage.js';
import { PatternScanner } from './patternScanner.js';
import type {
  FromWorker,
  MirrorUpdate,
  QuestionKind,
  Questions,
  Step,
  ToWorker,
} from './screenProtocol.js';
import type { Rendered } from './screenState.js';

/** Milliseconds without use after which an emulator is parked. */
export const PARK_AFTER_MS = 60_000;
/** Milliseconds between updates of a mirror while output keeps coming. */
const MIRROR_EVERY_MS = 100;

export class ScreenHost {
  readonly #screens = new Map<number, Hosted>();
  readonly #scanners = new Map<number, PatternScanner>();

  constructor(
    private readonly post: (message: FromWorker) => void,
    private readonly now: () => number = () => performance.now(),
  ) {}

  receive(message: ToWorker): void {
    switch (message.op) {
      case 'open':
        this.#screens.set(message.id, new Hosted(new Emulator(message.size), message.mirrored));
        return;
      case 'openScan':
        this.#scanners.set(message.id, new PatternScanner(message.pattern));
        return;
      case 'feed':
        this.#feedOrBreak(message.id, message.steps);
        return;
      case 'ask':
        void this.#answer(message);
        return;
      case 'close':
        this.#scanners.delete(message.id);
        this.#screens.delete(message.id);
        return;
    }
  }

  /** Parks what nobody used for a while. */
  parkIdle(): void {
    const limit = this.now() - PARK_AFTER_MS;
    for (const [id, hosted] of this.#screens) {
      if (hosted.waiting > 0 || hosted.usedAt > limit) continue;
      void this.#queue(id, async ({ emulator }) => emulator.park(), hosted.usedAt);
    }
  }

  /** One emulator's work, in order. */
  #queue<T>(id: number, work: (hosted: Hosted) => Promise<T>, usedAt = this.now()): Promise<T> {
    const hosted = this.#screens.get(id);
    if (!hosted) return Promise.reject(new Error(`no emulator ${id}`));
    hosted.usedAt = usedAt;
    hosted.waiting += 1;
    const done = hosted.tail.then(async () => {
      hosted.waiting -= 1;
      return work(hosted);
    });
    hosted.tail = done.then(
      () => {},
      () => {},
    );
    return done;
  }

  /** Bytes that an emulator chokes on end that one alone. */
  #feedOrBreak(id: number, steps: readonly Step[]): void {
    this.#queue(id, (hosted) => this.#feed(id, hosted, steps)).catch((error: unknown) => {
      if (this.#screens.delete(id)) this.post({ op: 'broken', id, failure: errorFailure(error) });
    });
  }

  async #feed(id: number, hosted: Hosted, steps: readonly Step[]): Promise<void> {
    const { emulator } = hosted;
    await emulator.wake();
    for (const { seq, skippedFromSeq, modes, size, data } of steps) {
      if (skippedFromSeq !== undefined) await emulator.skip(skippedFromSeq, modes);
      if (size) emulator.resize(size);
      if (data) await emulator.write(seq, data);
      else emulator.pass(seq);
    }
    const due = this.now() - hosted.mirroredAt >= MIRROR_EVERY_MS;
    if (hosted.mirrored && (hosted.waiting === 0 || due)) {
      this.post({ op: 'mirror', id, update: mirrorUpdate(hosted) });
      hosted.mirroredAt = this.now();
    }
    this.post({ op: 'rendered', id, seq: emulator.throughSeq });
  }

  async #answer(message: Extract<ToWorker, { op: 'ask' }>): Promise<void> {
    const { call } = message;
    try {
      this.post({ op: 'answer', call, answer: await this.#ask(message) });
    } catch (error) {
      this.post({ op: 'failed', call, failure: errorFailure(error) });
    }
  }

  #ask(message: Extract<ToWorker, { op: 'ask' }>): Promise<Questions[QuestionKind]['answer']> {
    if (message.kind === 'scan') return this.#scan(message.id, message.ask.steps);
    return this.#queue(message.id, async ({ emulator }) => {
      await emulator.wake();
      switch (message.kind) {
        case 'screen':
          return emulator.screen(message.ask.format);
        case 'page':
          return { ...readPage(emulator.lines(), message.ask), ...rendered(emulator) };
        case 'find': {
          const { pattern, maxMatches } = message.ask;
          const found = await findText(emulator.lines(), pattern, maxMatches);
          return { ...found, ...rendered(emulator) };
        }
      }
    });
  }

  async #scan(id: number, steps: readonly Step[]): Promise<Questions['scan']['answer']> {
    const scanner = this.#scanners.get(id);
    const match = steps.find(({ data }) => data && scanner?.matches(data));
    return match ? { matchedSeq: match.seq } : {};
  }
}

class Hosted {
  /** Settles when the work queued so far is done. */
  tail: Promise<void> = Promise.resolve();
  /** Work that has not begun. */
  waiting = 0;
  usedAt = 0;
  /** Number of the next stored line that the mirror has not got. */
  mirroredLines = 0;
  mirroredAt = Number.NEGATIVE_INFINITY;

  constructor(
    readonly emulator: Emulator,
    readonly mirrored: boolean,
  ) {}
}

function mirrorUpdate(hosted: Hosted): MirrorUpdate {
  const { emulator } = hosted;
  const { stored } = emulator;
  const newSkip = emulator.takeSkip();
  const storedFrom = Math.max(hosted.mirroredLines, stored.dropped);
  hosted.mirroredLines = stored.end;
  return {
    ...rendered(emulator),
    ...emulator.screenLines(),
    droppedLines: stored.dropped,
    storedFrom,
    stored: stored.since(storedFrom),
    ...(newSkip !== undefined && { newSkip }),
    modes: emulator.inputModes(),
  };
}

function rendered(emulator: Emulator): Rendered {
  const { skippedFromSeq } = emulator;
  return {
    throughSeq: emulator.throughSeq,
    ...(skippedFromSeq !== undefined && { skippedFromSeq }),
  };
}
