// One attachment that types frames in bursts, and after a lost connection asks what was taken.
import { describe, isRefusal, isTransient } from '../world.mjs';
import { frame } from './typist.mjs';

const KIND_SERVICE = 3;
/** TERMINAL_STATE_RUNNING; those above have ended. */
const RUNNING = 2;

/** Milliseconds without an acknowledgement after which a burst counts as stuck. */
const STUCK_MS = 60_000;

/** Milliseconds for the first answer; one that is late is asked for again, like any other call. */
const OPENED_MS = 15_000;
const late = Object.assign(new Error('no answer to an open attachment'), {
  code: 'DEADLINE_EXCEEDED',
});

/** Resolves with `done` when time is over, `exited` when the program has ended. */
export async function typeAttached(world, { terminal, instance, lane, time }) {
  const { random, record, pause } = world;
  const place = { uid: terminal.uid, instance, lane };
  let stream = await opened(world, terminal, undefined);
  if (!stream) return 'exited';
  let k = 0;
  while (!time.aborted) {
    const burst = [];
    for (let left = random.int(1, 8); left > 0; left -= 1) {
      k += 1;
      const text = frame(lane, k, random.letters(random.int(0, random.chance(0.1) ? 30_000 : 800)));
      record({ t: 'frame', ...place, k, len: text.length });
      burst.push({ k, text });
    }
    const from = stream.sent;
    for (const { text } of burst) await stream.send(text);
    const how = await stream.acknowledged();
    let taken = stream.acked - from;
    if (how !== 'acknowledged') {
      const { attachmentId } = stream;
      stream.leave();
      stream = await opened(world, terminal, attachmentId);
      // Another attachment knows nothing of what the old one had typed.
      taken = stream?.resumed ? stream.acked - from : null;
    }
    for (const { k: at, text } of burst) {
      const part = taken === null ? null : Math.max(0, Math.min(text.length, taken));
      record({ t: 'taken', ...place, k: at, taken: part });
      if (taken !== null) taken -= text.length;
    }
    if (!stream) return 'exited';
    await pause(10, 300);
  }
  stream.leave();
  return 'done';
}

/** An open stream of the attachment; undefined when the program has ended. */
async function opened(world, { ref }, attachmentId) {
  const { client, settle } = world;
  const { stream } = await settle('attach', async () => {
    const leaving = new AbortController();
    const call = await client.terminals.attach({ signal: leaving.signal });
    const start = { case: 'live', value: true };
    const open = {
      terminal: ref,
      kind: KIND_SERVICE,
      start,
      ...(attachmentId && { attachmentId }),
    };
    await call.send({ frame: { case: 'open', value: open } });
    const responses = call.responses[Symbol.asyncIterator]();
    // The first answer, or the failure that `settle` looks at: a signal's reason is what the call throws.
    const timer = setTimeout(() => leaving.abort(late), OPENED_MS);
    const { value } = await responses.next().finally(() => clearTimeout(timer));
    if (value?.event.case !== 'started') throw new Error(`no started: ${value?.event.case}`);
    return { stream: new TypedStream(world, call, responses, value.event.value, leaving) };
  });
  if (!stream || stream.lives) return stream;
  stream.leave();
  return undefined;
}

class TypedStream {
  #waiting = () => {};
  #how;

  constructor(world, call, responses, started, leaving) {
    this.world = world;
    this.call = call;
    this.leaving = leaving;
    this.attachmentId = started.attachmentId;
    this.resumed = started.attachmentResumed;
    this.state = started.terminal.state;
    this.acked = Number(started.inputBytes);
    this.sent = this.acked;
    void this.#run(responses);
  }

  get lives() {
    return this.state <= RUNNING;
  }

  async #run(responses) {
    try {
      for (;;) {
        const { done, value } = await responses.next();
        if (done) break;
        if (value.event.case === 'inputAck') this.acked = Number(value.event.value.bytes);
        if (value.event.case === 'denied') this.#how = 'denied';
        this.#waiting();
      }
      this.#how ??= 'ended';
    } catch (failure) {
      this.#how ??= 'lost';
      // Nobody hands this stream another token: on a slow host it may last longer than its own.
      const over = failure?.reason === 'TOKEN_EXPIRED';
      const known =
        this.leaving.signal.aborted || over || isTransient(failure) || isRefusal(failure);
      if (!known) {
        this.world.record({ t: 'fault', op: 'attach', failure: describe(failure) });
      }
    }
    this.#waiting();
  }

  async send(text) {
    this.sent += text.length;
    await this.call.send({ frame: { case: 'input', value: { data: Buffer.from(text) } } });
  }

  /** Resolves when all that was sent has been taken, or when that cannot be any more. */
  async acknowledged() {
    const stuck = AbortSignal.timeout(STUCK_MS);
    while (this.acked < this.sent && this.#how === undefined) {
      await new Promise((resolve) => {
        this.#waiting = resolve;
        stuck.addEventListener('abort', resolve, { once: true });
      });
      if (stuck.aborted) {
        const { acked, sent } = this;
        this.world.record({ t: 'fault', op: 'input', failure: { text: 'stuck', acked, sent } });
        return 'stuck';
      }
    }
    return this.acked === this.sent ? 'acknowledged' : this.#how;
  }

  leave() {
    this.leaving.abort();
  }
}
