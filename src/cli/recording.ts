/** The history of a terminal, from a watch of it, as a recording: piece by piece, each to be written. */
import type { WatchEvent } from '../client/watch.js';
import { shownCommand } from '../core/shellBootstrap.js';
import { Asciicast, type AsciicastVersion, type Size } from './asciicast.js';
import { Sanitizer } from './sanitizer.js';

export type ExportFormat = 'asciicast-v2' | 'asciicast-v3' | 'text';

/** What children are told unless their creator says otherwise. */
const TERM = 'xterm-256color';

/** `told` is told what the recording could not keep. */
export function recording(
  format: ExportFormat,
  events: AsyncIterable<WatchEvent>,
  told: (text: string) => void,
): AsyncGenerator<string, void, undefined> {
  if (format === 'text') return plainText(events, told);
  return asciicast(format === 'asciicast-v3' ? 3 : 2, events, told);
}

async function* plainText(
  events: AsyncIterable<WatchEvent>,
  told: (text: string) => void,
): AsyncGenerator<string> {
  const { plainHistory } = await import('../app/plainHistory.js');
  // A screen keeps no control, but marks that turn the direction of text round.
  const sanitizer = new Sanitizer();
  for await (const text of plainHistory(events, told)) yield sanitizer.push(Buffer.from(text));
  yield sanitizer.end();
}

type Started = Extract<WatchEvent, { case: 'started' }>['value'];
type Exited = Extract<WatchEvent, { case: 'exited' }>['value'];

async function* asciicast(
  version: AsciicastVersion,
  events: AsyncIterable<WatchEvent>,
  told: (text: string) => void,
): AsyncGenerator<string> {
  let started: Started | undefined;
  let cast: Asciicast | undefined;
  // A size is told before the output that was printed at it, an exit before what comes after it.
  let size: Size | undefined;
  let exit: Exited | undefined;
  for await (const event of events) {
    if (event.case === 'started') {
      started = event.value;
      size = started.terminal?.size;
    } else if (event.case === 'resized') {
      size = event.value.size;
    } else if (event.case === 'output' || event.case === 'exited') {
      const micros = microsOf(event.value.time);
      if (cast === undefined) {
        cast = new Asciicast(version, headerOf(started, size, micros));
        yield cast.header();
        size = undefined;
      }
      if (exit) yield cast.marker(microsOf(exit.time), `exit ${exit.status?.exitCode ?? '?'}`);
      exit = undefined;
      if (size) yield cast.resize(micros, size);
      size = undefined;
      if (event.case === 'output') yield cast.output(micros, event.value.data);
      else exit = event.value;
    }
  }
  if (cast === undefined) {
    cast = new Asciicast(version, headerOf(started, size, microsOf(started?.terminal?.createdAt)));
    yield cast.header();
  }
  const code = exit?.status?.exitCode;
  yield exit && code !== undefined ? cast.exit(microsOf(exit.time), code) : cast.end();
  if (cast.replaced) told('bytes that are no UTF-8 stand as U+FFFD; ctx terminal watch keeps them');
}

function headerOf(started: Started | undefined, size: Size | undefined, startMicros: number) {
  const { command = [], title = '' } = started?.terminal ?? {};
  return {
    size: size ?? { columns: 80, rows: 24 },
    startMicros,
    term: TERM,
    ...(command.length > 0 && { command: shownCommand(command).map(quoted).join(' ') }),
    ...(title !== '' && { title }),
  };
}

/** As a shell would take it. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function microsOf(time: { readonly seconds: bigint; readonly nanos: number } | undefined): number {
  return time === undefined ? 0 : Number(time.seconds) * 1e6 + Math.floor(time.nanos / 1000);
}
