/** Events in a row for who only looks at them: their outputs are decoded one behind the other, and not kept. */
import type { TerminalEvent } from '../../core/event.js';
import { decodeLine } from '../eventCodec.js';
import { takeLinesOf } from '../lines.js';
import type { LogPlace } from '../logIndex.js';
import { BLOCK_BYTES } from './lineBuffers.js';
import { requireSeq } from './logPart.js';

/** Bytes before the outputs of a passage that are free to be written: for what is kept of the past. */
export const MARGIN_BYTES = 64 * 1024;

/** It and all that it holds is valid only during the call that it is given to. */
export interface Passage {
  /** The data of an output is a part of `bytes`. */
  readonly events: readonly TerminalEvent[];
  /** From MARGIN_BYTES on what the outputs hold, and nothing else. */
  readonly bytes: Buffer;
  /** Of its last event, which may be of a type that is not known and not among `events`. */
  readonly lastSeq: number;
}

/** The one place that all passages are decoded to: each is looked at and forgotten before the next. */
let room: Buffer | undefined;

/** The events of complete lines read at `place`, through `throughSeq`, and where those after them begin. */
export function readPassage(
  lines: Buffer,
  place: LogPlace,
  throughSeq: number,
): { readonly passage: Passage; readonly next: LogPlace } {
  // Base64 is a third longer than what it stands for.
  room ??= Buffer.allocUnsafeSlow(MARGIN_BYTES + (BLOCK_BYTES / 4) * 3);
  const to = room;
  const events: TerminalEvent[] = [];
  let { seq } = place;
  let end = MARGIN_BYTES;
  const allocate = (size: number) => to.subarray(end, end + size);
  const taken = takeLinesOf(lines, place.offset, (line, from, through, offset) => {
    if (seq > throughSeq) return false;
    const event = decodeLine(line, from, through, allocate);
    requireSeq(event.seq, seq, offset);
    if (event.type === 'pty.output') end += event.data.length;
    if (event.type !== 'unknown') events.push(event);
    seq++;
    return true;
  });
  return {
    passage: { events, bytes: to.subarray(0, end), lastSeq: seq - 1 },
    next: { seq, offset: place.offset + taken },
  };
}
