/** The worker threads that screens are emulated in, and the emulators in them. */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { GranttyError } from '../core/errors.js';
import type { TerminalSize } from '../core/event.js';
import { failureError } from './failure.js';
import type {
  FromWorker,
  MirrorUpdate,
  QuestionKind,
  Questions,
  Step,
  ToWorker,
} from './screenProtocol.js';

export interface ScreenWorkersOptions {
  /** The built entry. Absent: the one beside this file. */
  readonly entry?: URL;
  /** Threads at most; they start when they are needed. Absent: one less than processors, 4 at most. */
  readonly threads?: number;
}

/** What an emulator tells its user. */
export interface EmulatorEvents {
  /** One feed has been rendered, through this seq. */
  rendered(seq: number): void;
  /** Given when the emulator is mirrored, before `rendered`. */
  mirrored?(update: MirrorUpdate): void;
  /** It is gone, with all that it had rendered; called once. */
  lost(error: Error): void;
}

export class ScreenWorkers implements AsyncDisposable {
  readonly #entry: URL;
  readonly #threads: Thread[] = [];
  readonly #maxThreads: number;
  #lastId = 0;
  #disposed = false;

  constructor(options: ScreenWorkersOptions = {}) {
    this.#entry = options.entry ?? new URL('./screenWorker.js', import.meta.url);
    this.#maxThreads = options.threads ?? Math.max(1, Math.min(4, availableParallelism() - 1));
  }

  /** Has a thread start, if none runs, so that it does while others prepare its work. */
  warm(): void {
    if (!this.#disposed && this.#threads.length === 0) this.#start();
  }

  openEmulator(size: TerminalSize, events: EmulatorEvents): RemoteEmulator {
    const id = this.#nextId();
    const mirrored = events.mirrored !== undefined;
    return new RemoteEmulator(this.#thread(), id, events, { op: 'open', id, size, mirrored });
  }

  /** The pattern must have been compiled before, so that its errors are seen. */
  openScanner(pattern: string): RemoteScanner {
    const id = this.#nextId();
    return new RemoteScanner(this.#thread(), id, { op: 'openScan', id, pattern });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    await Promise.all(this.#threads.splice(0).map((thread) => thread.end()));
  }

  #nextId(): number {
    this.#lastId += 1;
    return this.#lastId;
  }

  /** The one with the least to do. */
  #thread(): Thread {
    if (this.#disposed) throw unavailable('the screen workers have been shut down');
    const [least] = [...this.#threads].sort((a, b) => a.users.size - b.users.size);
    if (least && (least.users.size === 0 || this.#threads.length >= this.#maxThreads)) return least;
    return this.#start();
  }

  #start(): Thread {
    const thread = new Thread(this.#entry, () => {
      const index = this.#threads.indexOf(thread);
      if (index >= 0) this.#threads.splice(index, 1);
    });
    this.#threads.push(thread);
    return thread;
  }
}

interface Call {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** One worker thread. It keeps no process alive. */
class Thread {
  readonly users = new Map<number, EmulatorEvents>();
  readonly #worker: Worker;
  readonly #calls = new Map<number, Call>();
  readonly #onGone: () => void;
  #lastCall = 0;
  #gone = false;

  constructor(entry: URL, onGone: () => void) {
    this.#onGone = onGone;
    this.#worker = new Worker(entry);
    this.#worker.unref();
    this.#worker.on('message', (message: FromWorker) => this.#receive(message));
    this.#worker.on('error', (error) => this.#end(unavailable('a screen worker failed', error)));
    this.#worker.on('exit', () => this.#end(unavailable('a screen worker ended')));
  }

  send(message: ToWorker, transfer: readonly ArrayBuffer[] = []): void {
    if (!this.#gone) this.#worker.postMessage(message, transfer);
  }

  ask<Kind extends QuestionKind>(
    id: number,
    kind: Kind,
    ask: Questions[Kind]['ask'],
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Questions[Kind]['answer']> {
    if (this.#gone) return Promise.reject(unavailable('a screen worker ended'));
    this.#lastCall += 1;
    const call = this.#lastCall;
    return new Promise<unknown>((resolve, reject) => {
      this.#calls.set(call, { resolve, reject });
      this.#worker.ref();
      this.send({ op: 'ask', id, call, kind, ask } as ToWorker, transfer);
    }) as Promise<Questions[Kind]['answer']>;
  }

  async end(): Promise<void> {
    this.#end(unavailable('the screen workers have been shut down'));
    await this.#worker.terminate();
  }

  #receive(message: FromWorker): void {
    switch (message.op) {
      case 'rendered':
        this.users.get(message.id)?.rendered(message.seq);
        return;
      case 'mirror':
        this.users.get(message.id)?.mirrored?.(message.update);
        return;
      case 'broken': {
        const user = this.users.get(message.id);
        this.users.delete(message.id);
        user?.lost(failureError(message.failure));
        return;
      }
      case 'answer':
        this.#settle(message.call)?.resolve(message.answer);
        return;
      case 'failed':
        this.#settle(message.call)?.reject(failureError(message.failure));
        return;
    }
  }

  #settle(id: number): Call | undefined {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (this.#calls.size === 0) this.#worker.unref();
    return call;
  }

  #end(error: Error): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#onGone();
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
    const users = [...this.users.values()];
    this.users.clear();
    for (const user of users) user.lost(error);
  }
}

export class RemoteEmulator {
  constructor(
    private readonly thread: Thread,
    private readonly id: number,
    events: EmulatorEvents,
    opening: ToWorker,
  ) {
    thread.users.set(id, events);
    thread.send(opening);
  }

  /** Renders the steps in order; `rendered` follows once for the call. The bytes are copied. */
  feed(steps: readonly Step[]): void {
    const { copied, transfer } = copySteps(steps);
    this.thread.send({ op: 'feed', id: this.id, steps: copied }, transfer);
  }

  /** Of what has been fed before this call. */
  ask<Kind extends Exclude<QuestionKind, 'scan'>>(
    kind: Kind,
    ask: Questions[Kind]['ask'],
  ): Promise<Questions[Kind]['answer']> {
    return this.thread.ask(this.id, kind, ask);
  }

  close(): void {
    if (!this.thread.users.delete(this.id)) return;
    this.thread.send({ op: 'close', id: this.id });
  }
}

/** A pattern looked for in one terminal's output. */
export class RemoteScanner {
  constructor(
    private readonly thread: Thread,
    private readonly id: number,
    opening: ToWorker,
  ) {
    thread.users.set(id, { rendered: () => {}, lost: () => {} });
    thread.send(opening);
  }

  /** The seq of the first of these events in which the pattern matched. The bytes are copied. */
  async scan(steps: readonly Step[]): Promise<number | undefined> {
    const { copied, transfer } = copySteps(steps);
    const { matchedSeq } = await this.thread.ask(this.id, 'scan', { steps: copied }, transfer);
    return matchedSeq;
  }

  close(): void {
    if (!this.thread.users.delete(this.id)) return;
    this.thread.send({ op: 'close', id: this.id });
  }
}

/** Bytes of events are shared with others: the thread gets copies, and those without another one. */
function copySteps(steps: readonly Step[]): { copied: Step[]; transfer: ArrayBuffer[] } {
  const transfer: ArrayBuffer[] = [];
  const copied = steps.map(({ data, ...rest }) => {
    if (!data) return rest;
    const bytes = new Uint8Array(data);
    transfer.push(bytes.buffer);
    return { ...rest, data: bytes };
  });
  return { copied, transfer };
}

function unavailable(message: string, cause?: unknown): GranttyError {
  return new GranttyError('SUPERVISOR_UNAVAILABLE', `${message}; try again`, { cause });
}
