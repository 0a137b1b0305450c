/** Attach as one unbroken attachment: events out, input in, resumed after a lost connection. */
import { MAX_INPUT_FRAME_BYTES } from '../core/limits.js';
import type { Started } from '../gen/public/grantty/v1/stream_pb.js';
import type { Signal, TerminalSizeSchema } from '../gen/public/grantty/v1/terminal_pb.js';
import type {
  AttachOpenSchema,
  AttachRequestSchema,
  AttachResponse,
  AttachResponseSchema,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { DuplexCall, Init } from './grpc.js';
import { InputWindow } from './inputWindow.js';
import { Position } from './position.js';
import { type Pacing, Reconnection, realPacing } from './reconnection.js';
import { mayGoOn, type StreamSource } from './watch.js';

export type AttachOpenInit = Init<typeof AttachOpenSchema>;
type SizeInit = Init<typeof TerminalSizeSchema>;

/** The connection was lost and the attachment goes on. */
export interface Reconnected {
  /** Input bytes that were sent before the loss and are not known to have arrived; never resent. */
  readonly inputInDoubt: number;
}

export type AttachEvent =
  | Exclude<AttachResponse['event'], { case: undefined }>
  | { readonly case: 'reconnected'; readonly value: Reconnected };

export interface AttachOptions {
  /** Ends the attachment, and the iteration with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Told why the stream broke, before each attempt to resume it; attempts count from 1. */
  readonly onInterruption?: (failure: unknown, attempt: number) => void;
  readonly pacing?: Pacing;
}

/**
 * An open attachment. `events` is to be iterated once, and all the time: acknowledgements come on
 * it too, so that input waits for a caller that does not read.
 */
export interface Attachment extends AsyncDisposable {
  /** From `started` to `closing`, each seq once, `denied` and `inputAck` in between. */
  readonly events: AsyncIterable<AttachEvent>;
  /**
   * Sends bytes in order, in frames of at most 64 KiB; up to 64 KiB stay one piece at the terminal.
   * Resolves when more may be sent. A refusal comes as a `denied` event.
   */
  input(data: Uint8Array): Promise<void>;
  /** Sets the size; after a reconnection it is set again. */
  resize(size: SizeInit): Promise<void>;
  signal(signal: Signal): Promise<void>;
  /** No input follows; events go on. */
  endInput(): void;
  /** Leaves the terminal, which lives on. The iteration of `events` ends. */
  close(): void;
}

type Call = DuplexCall<typeof AttachRequestSchema, typeof AttachResponseSchema>;
type Frame = NonNullable<Init<typeof AttachRequestSchema>['frame']>;

/** Milliseconds between looks for a renewed token once the server has warned of the old one's end. */
const TOKEN_POLL_MS = 2_000;

/**
 * Opens an attachment; resolves with its `started` received.
 * @throws CallError, StatusError
 */
export async function attach(
  source: StreamSource,
  open: AttachOpenInit,
  options: AttachOptions = {},
): Promise<Attachment> {
  const attachment = new ResumingAttachment(source, open, options);
  await attachment.start();
  return attachment;
}

/** One stream of the attachment. */
interface Stream {
  readonly call: Call;
  readonly token: string;
  readonly responses: AsyncIterator<AttachResponse>;
  readonly ended: AbortController;
  /** Index that the next frame has on this stream. */
  frames: number;
}

class ResumingAttachment implements Attachment {
  readonly events: AsyncIterable<AttachEvent>;
  readonly #closing = new AbortController();
  readonly #signal: AbortSignal;
  readonly #window = new InputWindow();
  readonly #position: Position;
  readonly #reconnection: Reconnection;
  readonly #pacing: Pacing;
  #open: AttachOpenInit;
  /** Undefined while the connection is lost. */
  #stream: Stream | undefined;
  /** The `started` of the first stream, until it is iterated. */
  #first: AttachEvent | undefined;
  #inputEnded = false;
  #over = false;
  /** The end of the chain of input calls: one call's frames all go before the next one's. */
  #lastInput: Promise<void> = Promise.resolve();

  constructor(
    private readonly source: StreamSource,
    open: AttachOpenInit,
    private readonly options: AttachOptions,
  ) {
    this.#open = open;
    this.#signal = options.signal
      ? AbortSignal.any([options.signal, this.#closing.signal])
      : this.#closing.signal;
    this.#position = new Position(open.start);
    this.#pacing = options.pacing ?? realPacing;
    this.#reconnection = new Reconnection(source.token, this.#signal, this.#pacing);
    this.events = this.#run();
  }

  async start(): Promise<void> {
    const { stream, started } = await this.#connect(await this.source.token());
    this.#stream = stream;
    this.#first = { case: 'started', value: started };
  }

  async *#run(): AsyncGenerator<AttachEvent, void, undefined> {
    try {
      if (this.#first) yield this.#first;
      for (;;) {
        const stream = this.#stream;
        if (stream === undefined) return;
        try {
          yield* this.#events(stream);
          return;
        } catch (failure) {
          if (this.#closing.signal.aborted) return;
          this.#end(stream);
          yield { case: 'reconnected', value: await this.#reconnect(failure, stream.token) };
        }
      }
    } finally {
      this.#over = true;
      if (this.#stream) this.#end(this.#stream);
      this.#window.restart(0);
    }
  }

  async *#events(stream: Stream): AsyncGenerator<AttachEvent, void, undefined> {
    for (;;) {
      const { done, value } = await stream.responses.next();
      if (done) return;
      const { event } = value;
      switch (event.case) {
        case undefined:
        case 'started':
          continue;
        case 'expiring':
          void this.#reauthenticate(stream);
          continue;
        case 'inputAck':
          this.#window.acknowledged(Number(event.value.bytes));
          break;
        case 'denied':
          this.#window.refused(Number(event.value.frameIndex));
          break;
        case 'closing':
          if (mayGoOn(event.value.reason)) continue;
          break;
        default:
          if (!this.#position.advance(event)) continue;
      }
      yield event;
    }
  }

  async #connect(token: string): Promise<{ stream: Stream; started: Started }> {
    const call = await this.source.terminals.attach({ token, signal: this.#signal });
    const start = this.#position.next;
    const open = start ? { ...this.#open, start } : this.#open;
    await call.send({ frame: { case: 'open', value: open } });
    const responses = call.responses[Symbol.asyncIterator]();
    const { value } = await responses.next();
    if (value?.event.case !== 'started') {
      call.cancel();
      throw new TypeError('the server did not begin the attachment with `started`');
    }
    const started = value.event.value;
    this.#reconnection.opened();
    this.#position.started(started);
    this.#open = { ...this.#open, attachmentId: started.attachmentId };
    const stream: Stream = { call, token, responses, ended: new AbortController(), frames: 1 };
    return { stream, started };
  }

  async #reconnect(failure: unknown, usedToken: string): Promise<Reconnected> {
    let latest = failure;
    let token = usedToken;
    for (;;) {
      const attempt = await this.#reconnection.wait(latest, token);
      this.options.onInterruption?.(latest, attempt);
      try {
        token = await this.source.token();
        const { stream, started } = await this.#connect(token);
        this.#stream = stream;
        const inputInDoubt = this.#window.restart(Number(started.inputBytes));
        if (this.#inputEnded) stream.call.halfClose();
        return { inputInDoubt };
      } catch (next) {
        latest = next;
      }
    }
  }

  /** Hands the stream a renewed token as soon as there is one. */
  async #reauthenticate(stream: Stream): Promise<void> {
    const { signal } = stream.ended;
    while (!signal.aborted) {
      const token = await this.source.token().catch(() => stream.token);
      if (token !== stream.token) {
        await this.#send(stream, { case: 'reauthenticate', value: { token } });
        return;
      }
      await this.#pacing.sleep(TOKEN_POLL_MS, signal).catch(() => {});
    }
  }

  async input(data: Uint8Array): Promise<void> {
    const sent = this.#lastInput.then(() => this.#input(data));
    this.#lastInput = sent.catch(() => {});
    return sent;
  }

  async #input(data: Uint8Array): Promise<void> {
    for (let from = 0; from < data.length; from += MAX_INPUT_FRAME_BYTES) {
      const frame = data.subarray(from, from + MAX_INPUT_FRAME_BYTES);
      const stream = await this.#writable();
      if (stream === undefined) return;
      this.#window.sent(stream.frames, frame.length);
      await this.#send(stream, { case: 'input', value: { data: frame } });
    }
  }

  /** Waits for a connection with room for input; undefined when the attachment is over. */
  async #writable(): Promise<Stream | undefined> {
    while (!this.#over && !this.#signal.aborted) {
      if (this.#stream && !this.#window.full) return this.#stream;
      await this.#window.changed();
    }
    return undefined;
  }

  async resize(size: SizeInit): Promise<void> {
    this.#open = { ...this.#open, size };
    if (this.#stream) await this.#send(this.#stream, { case: 'resize', value: { size } });
  }

  async signal(signal: Signal): Promise<void> {
    const stream = await this.#writable();
    if (stream) await this.#send(stream, { case: 'signal', value: { signal } });
  }

  #send(stream: Stream, frame: Frame): Promise<void> {
    stream.frames += 1;
    return stream.call.send({ frame });
  }

  endInput(): void {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    // Behind the input that still waits for room.
    void this.#lastInput.then(() => this.#stream?.call.halfClose());
  }

  close(): void {
    this.#closing.abort();
    this.#over = true;
    if (this.#stream) this.#end(this.#stream);
    this.#window.restart(0);
  }

  #end(stream: Stream): void {
    stream.ended.abort();
    stream.call.cancel();
    if (this.#stream === stream) this.#stream = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }
}
