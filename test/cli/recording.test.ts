/** `ctx terminal export`: recordings that a player takes, from events cut anywhere. */

import type { MessageInitShape } from '@bufbuild/protobuf';
import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { recording } from '../../src/cli/recording.js';
import type { WatchEvent } from '../../src/client/watch.js';
import {
  type WatchResponse,
  WatchResponseSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';

type Init = NonNullable<MessageInitShape<typeof WatchResponseSchema>['event']>;

/** 2024-01-01T00:00:00.25Z */
const START_MICROS = 1_704_067_200_250_000;

function event(init: Init): WatchEvent {
  const { event: made } = create(WatchResponseSchema, { event: init }) as WatchResponse;
  if (made.case === undefined) throw new Error('an event has a kind');
  return made;
}

const at = (micros: number) => {
  const all = START_MICROS + micros;
  const seconds = Math.floor(all / 1e6);
  return { seconds: BigInt(seconds), nanos: (all - seconds * 1e6) * 1000 };
};
let seq = 0n;
const output = (micros: number, data: string | Uint8Array) => {
  seq += 1n;
  return event({ case: 'output', value: { seq, time: at(micros), data: Buffer.from(data) } });
};
const exited = (micros: number, exitCode?: number) => {
  const status = exitCode === undefined ? {} : { exitCode };
  return event({ case: 'exited', value: { time: at(micros), status } });
};
const resized = (columns: number, rows: number) =>
  event({ case: 'resized', value: { size: { columns, rows } } });
const started = event({
  case: 'started',
  value: {
    terminal: { command: ['sh', '-c', "echo it's"], title: 'T', size: { columns: 9, rows: 9 } },
  },
});

async function exported(
  format: Parameters<typeof recording>[0],
  events: readonly WatchEvent[],
): Promise<{ lines: unknown[]; text: string; told: string[] }> {
  const told: string[] = [];
  let text = '';
  async function* source() {
    yield* events;
  }
  for await (const piece of recording(format, source(), (one) => told.push(one))) text += piece;
  const lines =
    format === 'text'
      ? []
      : text
          .trimEnd()
          .split('\n')
          .map((one) => JSON.parse(one));
  return { lines, text, told };
}

describe('a recording', () => {
  const session = [
    started,
    resized(100, 30),
    output(0, 'a'),
    output(1_500_000, 'b\r\n'),
    resized(120, 40),
    output(2_000_000, 'c'),
    exited(2_250_000, 3),
  ];

  it('of version 2 has a header, and events at their time since the first', async () => {
    expect((await exported('asciicast-v2', session)).lines).toEqual([
      {
        version: 2,
        width: 100,
        height: 30,
        timestamp: 1_704_067_200,
        command: "sh -c 'echo it'\\''s'",
        title: 'T',
        env: { TERM: 'xterm-256color' },
      },
      [0, 'o', 'a'],
      [1.5, 'o', 'b\r\n'],
      [2, 'r', '120x40'],
      [2, 'o', 'c'],
    ]);
  });

  it('of version 3 tells the time since the event before, and the exit', async () => {
    expect((await exported('asciicast-v3', session)).lines).toEqual([
      {
        version: 3,
        term: { cols: 100, rows: 30, type: 'xterm-256color' },
        timestamp: 1_704_067_200,
        command: "sh -c 'echo it'\\''s'",
        title: 'T',
      },
      [0, 'o', 'a'],
      [1.5, 'o', 'b\r\n'],
      [0.5, 'r', '120x40'],
      [0, 'o', 'c'],
      [0.25, 'x', '3'],
    ]);
  });

  it('marks an exit after which the terminal was started again, and has one end', async () => {
    const again = [...session, output(3_000_000, 'd'), exited(3_000_001, 0)];
    const { lines } = await exported('asciicast-v3', again);
    expect(lines.slice(5)).toEqual([
      [0.25, 'm', 'exit 3'],
      [0.75, 'o', 'd'],
      [0.000001, 'x', '0'],
    ]);
  });

  it('has no exit where none is known', async () => {
    const { lines } = await exported('asciicast-v3', [started, output(0, 'a'), exited(1)]);
    expect(lines.slice(1)).toEqual([[0, 'o', 'a']]);
  });

  it('never goes back in time, though the clock did', async () => {
    const events = [started, output(1_000_000, 'a'), output(500_000, 'b'), output(2_000_000, 'c')];
    const times = async (format: 'asciicast-v2' | 'asciicast-v3') =>
      (await exported(format, events)).lines.slice(1).map((one) => (one as [number])[0]);
    expect(await times('asciicast-v2')).toEqual([0, 0, 1]);
    expect(await times('asciicast-v3')).toEqual([0, 0, 1]);
  });

  it('of a terminal that printed nothing is its header', async () => {
    const { lines } = await exported('asciicast-v2', [started]);
    expect(lines).toEqual([expect.objectContaining({ version: 2, width: 9, height: 9 })]);
  });

  it('says so when bytes were no UTF-8, also at the very end', async () => {
    const cut = Buffer.from('é').subarray(0, 1);
    for (const data of [Buffer.from([0xff, 0x61]), cut]) {
      const { lines, told } = await exported('asciicast-v2', [
        started,
        output(0, data),
        exited(1, 0),
      ]);
      expect(JSON.stringify(lines.at(-1))).toContain('\ufffd');
      expect(told).toHaveLength(1);
    }
    expect((await exported('asciicast-v2', session)).told).toEqual([]);
  });

  it('of any text cut anywhere plays as that text, its whole characters in its events', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: 'grapheme', minLength: 1 }),
        fc.array(fc.nat(), { maxLength: 8 }),
        async (text, cuts) => {
          const bytes = Buffer.from(text);
          const places = [0, ...cuts.map((n) => n % bytes.length), bytes.length].sort(
            (a, b) => a - b,
          );
          const chunks = places.slice(1).map((end, n) => bytes.subarray(places[n], end));
          const events = chunks.filter(({ length }) => length > 0).map((one, n) => output(n, one));
          for (const format of ['asciicast-v2', 'asciicast-v3'] as const) {
            const { lines } = await exported(format, [started, ...events, exited(99, 0)]);
            const played = lines
              .filter(
                (one): one is [number, string, string] => Array.isArray(one) && one[1] === 'o',
              )
              .map(([, , data]) => data);
            expect(played.join('')).toBe(text);
            expect(played.every((data) => data !== '')).toBe(true);
          }
        },
      ),
      { numRuns: 100 },
    );
  });

  it('as text is what a person reads, without what acts on a terminal', async () => {
    const { text } = await exported('text', [
      started,
      output(0, 'plain \x1b[3'),
      output(1, '1mred\x1b[0m\r\n'),
      exited(2, 0),
    ]);
    expect(text).toBe('plain red\n');
  });

  it('as text has a line as it was left: no blank one for a line that was written anew', async () => {
    const { text } = await exported('text', [
      started,
      resized(40, 5),
      output(0, '\x1b[?2004h$ ls\r\n\x1b[?2004l\ra\r\n'),
      output(1, '10%\r50%\r100%\r\n\x1b[?2004h$ '),
      resized(60, 5),
      output(2, 'exit\r\n'),
      exited(3, 0),
    ]);
    expect(text).toBe('$ ls\na\n100%\n$ exit\n');
  });

  it('as text says that screens are left out which a program has left', async () => {
    const { text, told } = await exported('text', [
      started,
      output(0, '$ vi\r\n\x1b[?1049h\x1b[H~\x1b[?1049l$ '),
      exited(1, 0),
    ]);
    expect(text).toBe('$ vi\n$');
    expect(told).toEqual([expect.stringContaining('not in the text')]);
  });
});
