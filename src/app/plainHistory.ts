/** The history of a terminal, from a watch of it, as the text that somebody who watched it read. */
import type { WatchEvent } from '../client/watch.js';
import type { TerminalSize } from '../core/event.js';
import type { TerminalSize as WireSize } from '../gen/public/grantty/v1/terminal_pb.js';
import { Transcript } from '../session/transcript.js';

/** Of a terminal whose size nobody has told. */
const DEFAULT_SIZE: TerminalSize = { cols: 80, rows: 24 };

/** Piece by piece, each to be written; `told` is told what is not in it. */
export async function* plainHistory(
  events: AsyncIterable<WatchEvent>,
  told: (text: string) => void,
): AsyncGenerator<string, void, undefined> {
  // A size is told before the output that was printed at it.
  let size = DEFAULT_SIZE;
  let transcript: Transcript | undefined;
  for await (const event of events) {
    if (event.case === 'started') size = sizeOf(event.value.terminal?.size) ?? size;
    else if (event.case === 'resized') size = sizeOf(event.value.size) ?? size;
    else if (event.case === 'output') {
      if (transcript === undefined) transcript = new Transcript(size);
      else transcript.resize(size);
      const text = await transcript.write(event.value.data);
      if (text !== '') yield text;
    }
  }
  if (transcript === undefined) return;
  yield await transcript.end();
  if (transcript.leftOut) {
    told('screens that programs drew and left again are not in the text; the recordings have them');
  }
}

function sizeOf(size: WireSize | undefined): TerminalSize | undefined {
  return size && { cols: size.columns, rows: size.rows };
}
