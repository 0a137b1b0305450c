/** Attach as one unbroken attachment: events out, input in, resumed after a lost connection. */
import { MAX_INPUT_FRAME_BYTES } from '../core/limits.js';
import type { Started } from '../gen/public/grantty/v1/stream_pb.js';
import type { Signal } from '../gen/public/grantty/v1/terminal_pb.js';
import type {
  AttachRequestSchema,
  AttachResponse,
  AttachResponseSchema,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type {
  AttachEvent,
  Attachment,
  AttachOpenInit,
  AttachOptions,
  Reconnected,
  SizeInit,
} from './attachment.js';
import type { DuplexCall, Init } from './grpc.js';
import { InputWindow } from './inputWindow.js';
import { LinkedSignal } from './linkedSignal.js';
import { Position } from './position.js';
import { type Pacing, Reconnection, realPacing } from './reconnection.js';
import { mayGoOn } from './resuming.js';
import type { StreamSource } from './watch.js';

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
  source.closed.throwIfAborted();
  const attachment = new ResumingAttachment(source, open, options);
  try {
    await attachment.start();
  } catch (failure) {
    attachment.close();
    throw failure;
  }
  return attachment;
}

/** One stream of the attachment. */
interface Stream {
  readonly call: Call;
  /** The one that the server was given last. */
  token: string;
  readonly responses: AsyncIterator<AttachResponse>;
  readonly ended: AbortController;
  /** Index that the next frame has on this stream. */
  frames: number;
}

class ResumingAttachment implements Attachment {
  readonly events: AsyncIterable<AttachEvent>;
  readonly #closing = new AbortController();
  readonly #ending: LinkedSignal;
  readonly #signal: AbortSignal;
  readonly #close = () => this.close();
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
  /** All input before `endInput` has been sent: every stream is half-closed. */
  #isHalfClosed = false;
  #over = false;
  /** The end of the chain of input calls: one call's frames all go before the next one's. */
  #lastInput: Promise<void> = Promise.resolve();

  constructor(
    private readonly source: StreamSource,
    open: AttachOpenInit,
    private readonly options: AttachOptions,
  ) {
    this.#open = open;
    this.#ending = new LinkedSignal([options.signal, this.#closing.signal]);
    this.#signal = this.#ending.signal;
    source.closed.addEventListener('abort', this.#close);
    this.#signal.addEventListener('abort', () => this.#window.end(), { once: true });
    this.#position = new Position(open.start);
    this.#pacing = options.pacing ?? realPacing;
    this.#reconnection = new Reconnection(source.token, this.#signal, this.#pacing);
    this.events = this.#run();
  }

  async start(): Promise<void> {
    const token = await this.source.token();
    const { started } = await this.#connect(token).catch((failure: unknown) => {
      if (!this.#moved(failure)) throw failure;
      return this.#connect(token);
    });
    this.#first = { case: 'started', value: started };
  }

  /** Whether the failure was that the place to go on from is gone, and there is another one now. */
  #moved(failure: unknown): boolean {
    const lastSeq = this.options.onRewind && this.#position.rewound(failure);
    if (lastSeq === undefined) return false;
    this.options.onRewind?.(lastSeq);
    return true;
  }

  async *#run(): AsyncGenerator<AttachEvent, void, undefined> {
    try {
      yield* this.#resumed();
    } catch (failure) {
      if (this.#closing.signal.aborted) return;
      this.#signal.throwIfAborted();
      throw failure;
    } finally {
      this.#finish();
    }
  }

  async *#resumed(): AsyncGenerator<AttachEvent, void, undefined> {
    if (this.#first) yield this.#first;
    for (;;) {
      const stream = this.#stream;
      if (stream === undefined) return;
      try {
        yield* this.#events(stream);
        return;
      } catch (failure) {
        this.#end(stream);
        yield { case: 'reconnected', value: await this.#reconnect(failure, stream.token) };
      }
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

  async #connect(token: string): Promise<Reconnected & { readonly started: Started }> {
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
    this.#stream = { call, token, responses, ended: new AbortController(), frames: 1 };
    if (this.#isHalfClosed) call.halfClose();
    return { started, inputInDoubt: this.#window.restart(Number(started.inputBytes)) };
  }

  async #reconnect(failure: unknown, usedToken: string): Promise<Reconnected> {
    let latest = failure;
    let token = usedToken;
    for (;;) {
      if (!this.#moved(latest)) {
        const attempt = await this.#reconnection.wait(latest, token);
        this.options.onInterruption?.(latest, attempt);
      }
      try {
        token = await this.source.token();
        const { inputInDoubt } = await this.#connect(token);
        return { inputInDoubt };
      } catch (next) {
        latest = next;
      }
    }
  }

  /**
   * Hands the stream a renewed token as soon as there is one. A half-closed stream cannot take it:
   * it ends with the old token and is opened again with the new one.
   */
  async #reauthenticate(stream: Stream): Promise<void> {
    const { signal } = stream.ended;
    while (!signal.aborted && !this.#isHalfClosed) {
      const token = await this.source.token().catch(() => stream.token);
      if (token !== stream.token && !this.#isHalfClosed) {
        stream.token = token;
        return this.#send({ case: 'reauthenticate', value: { token } }, stream);
      }
      await this.#pacing.sleep(TOKEN_POLL_MS, signal).catch(() => {});
    }
  }

  async input(data: Uint8Array): Promise<void> {
    if (this.#inputEnded) return;
    this.#lastInput = this.#lastInput.then(() => this.#input(data));
    return this.#lastInput;
  }

  async #input(data: Uint8Array): Promise<void> {
    for (let from = 0; from < data.length; from += MAX_INPUT_FRAME_BYTES) {
      const frame = data.subarray(from, from + MAX_INPUT_FRAME_BYTES);
      const stream = await this.#connected(() => !this.#window.full);
      if (stream === undefined) return;
      this.#window.sent(stream.frames, frame.length);
      await this.#send({ case: 'input', value: { data: frame } }, stream);
    }
  }

  /** Waits for a connection, and for the condition; undefined when the attachment is over. */
  async #connected(condition: () => boolean): Promise<Stream | undefined> {
    while (!this.#over && !this.#signal.aborted) {
      if (this.#stream && condition()) return this.#stream;
      await this.#window.changed();
    }
    return undefined;
  }

  async resize(size: SizeInit): Promise<void> {
    this.#open = { ...this.#open, size };
    await this.#send({ case: 'resize', value: { size } }, this.#stream);
  }

  async signal(signal: Signal): Promise<void> {
    const stream = await this.#connected(() => true);
    await this.#send({ case: 'signal', value: { signal } }, stream);
  }

  async #send(frame: Frame, stream: Stream | undefined): Promise<void> {
    if (stream === undefined || this.#isHalfClosed) return;
    stream.frames += 1;
    await stream.call.send({ frame });
  }

  endInput(): void {
    if (this.#inputEnded) return;
    this.#inputEnded = true;
    void this.#lastInput.then(() => {
      this.#isHalfClosed = true;
      this.#stream?.call.halfClose();
    });
  }

  close(): void {
    this.#closing.abort();
    this.#finish();
  }

  #finish(): void {
    this.#over = true;
    this.source.closed.removeEventListener('abort', this.#close);
    this.#ending[Symbol.dispose]();
    if (this.#stream) this.#end(this.#stream);
    this.#window.end();
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
