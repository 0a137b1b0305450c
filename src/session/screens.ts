/** The screens that somebody asked for: shared, kept warm, and dropped when idle. */
import type { TerminalKey } from '../supervisor/api.js';
import type { Clock } from './clock.js';
import type { EventSource } from './eventSource.js';
import { Mirror } from './mirror.js';
import { Screen, type ScreenObserver } from './screen.js';
import type { QuestionKind, Questions } from './screenProtocol.js';
import type { ScreenWorkers } from './screenWorkers.js';

/** Milliseconds for which a screen follows its terminal after the last question. */
const WARM_MS = 60_000;
/** Screens that are kept without being followed; above it the one unused for longest is dropped. */
const MAX_IDLE_SCREENS = 256;

/** A terminal's key with its incarnation: another terminal under the same id is another screen. */
export interface ScreenKey extends TerminalKey {
  readonly uid: string;
}

export interface ScreensOptions {
  readonly source: EventSource;
  readonly workers: ScreenWorkers;
  readonly clock: Clock;
}

export interface ObservedScreen {
  readonly screen: Screen;
  readonly mirror: Mirror;
}

interface Entry {
  readonly screen: Screen;
  /** Whoever observes it keeps it. */
  readonly observed: boolean;
  questions: number;
  cancelPause: () => void;
}

export class Screens implements Disposable {
  /** The one used last stands last. */
  readonly #entries = new Map<string, Entry>();

  constructor(private readonly options: ScreensOptions) {}

  /** Answers about the terminal as it is now; works on exited ones too. @throws as `EventSource` */
  async ask<Kind extends Exclude<QuestionKind, 'scan'>>(
    key: ScreenKey,
    kind: Kind,
    question: Questions[Kind]['ask'],
  ): Promise<Questions[Kind]['answer']> {
    const name = nameOf(key);
    const entry = this.#entries.get(name) ?? this.#newEntry(key);
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    entry.cancelPause();
    entry.questions += 1;
    try {
      return await entry.screen.ask(kind, question);
    } catch (error) {
      if (!entry.observed && entry.questions === 1) this.#drop(name);
      throw error;
    } finally {
      entry.questions -= 1;
      if (entry.questions === 0 && this.#entries.get(name) === entry) this.#pauseLater(entry);
    }
  }

  /** A screen with a mirror that follows its terminal until it is released; questions share it. */
  observe(key: ScreenKey, observer: ScreenObserver): ObservedScreen {
    const name = nameOf(key);
    this.#drop(name);
    const { source, workers } = this.options;
    const mirror = new Mirror();
    const screen = new Screen(key, source, workers, observer, mirror);
    this.#entries.set(name, { screen, observed: true, questions: 0, cancelPause: () => {} });
    screen.resume();
    return { screen, mirror };
  }

  /** Ends an observed screen. */
  release(screen: Screen): void {
    screen.close();
    for (const [name, entry] of this.#entries) {
      if (entry.screen === screen) this.#entries.delete(name);
    }
  }

  [Symbol.dispose](): void {
    for (const name of [...this.#entries.keys()]) this.#drop(name);
  }

  #newEntry(key: ScreenKey): Entry {
    this.#makeRoom();
    const { source, workers } = this.options;
    const screen = new Screen(key, source, workers);
    return { screen, observed: false, questions: 0, cancelPause: () => {} };
  }

  #pauseLater(entry: Entry): void {
    if (entry.observed) return;
    entry.cancelPause();
    entry.cancelPause = this.options.clock.after(WARM_MS, () => entry.screen.pause());
  }

  #makeRoom(): void {
    const idle = [...this.#entries].filter(([, each]) => !each.observed && each.questions === 0);
    for (const [name] of idle.slice(0, Math.max(0, idle.length - MAX_IDLE_SCREENS + 1))) {
      this.#drop(name);
    }
  }

  #drop(name: string): void {
    const entry = this.#entries.get(name);
    if (!entry) return;
    this.#entries.delete(name);
    entry.cancelPause();
    entry.screen.close();
  }
}

function nameOf({ owner, id, uid }: ScreenKey): string {
  return `${owner}/${id}/${uid}`;
}
