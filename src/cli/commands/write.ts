/** `ctx terminal write`: types text, keys, or standard input into a terminal. */
import { Command, Option } from 'commander';
import { MAX_INPUT_FRAME_BYTES } from '../../core/limits.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { UsageError } from '../exitCode.js';
import { readAll } from '../input.js';

export interface WriteFlags extends ConnectionFlags {
  readonly text?: string;
  readonly keys?: string;
  readonly paste?: boolean;
  readonly json?: boolean;
}

export function writeCommand(): Command {
  return withConnectionFlags(
    new Command('write')
      .description('type into a terminal: standard input byte for byte, or what a flag gives')
      .argument('<id>', 'terminal')
      .addOption(new Option('--text <text>', 'this text, as it is').conflicts('keys'))
      .addOption(
        new Option('--keys <keys>', 'keys by name, like C-c,Up,Enter,F1,M-x,q').conflicts('paste'),
      )
      .option('--paste', 'as a bracketed paste: the text or standard input'),
  )
    .option('--json', 'print the response to each write as JSON, one a line')
    .action(
      action(async (id: string, flags: WriteFlags) => {
        const [{ WriteResponseSchema }, { writeJson }] = await Promise.all([
          import('../../gen/public/grantty/v1/terminal_service_pb.js'),
          import('../json.js'),
        ]);
        using connection = await openConnection(flags);
        const terminal = connection.ref(id);
        for await (const data of frames(await inputOf(flags, process.stdin))) {
          const response = await connection.client.terminals.write({ terminal, data });
          if (flags.json) await writeJson(WriteResponseSchema, response);
        }
      }),
    );
}

/** What is to be typed; standard input is read whole only where it has to be wrapped. */
export async function inputOf(
  flags: WriteFlags,
  stdin: AsyncIterable<Uint8Array>,
): Promise<AsyncIterable<Uint8Array> | Iterable<Uint8Array>> {
  const { bracketedPaste, parseKeys } = await import('../../core/keys.js');
  if (flags.keys !== undefined) return [keysOf(parseKeys, flags.keys)];
  if (flags.paste) {
    const text = flags.text === undefined ? await readAll(stdin) : Buffer.from(flags.text);
    return [bracketedPaste(text)];
  }
  return flags.text === undefined ? stdin : [Buffer.from(flags.text)];
}

function keysOf(parse: (field: string, keys: string) => Uint8Array, keys: string): Uint8Array {
  try {
    return parse('--keys', keys);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Frames as one Write takes them: each whole at the terminal, what is longer in several. */
export async function* frames(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += MAX_INPUT_FRAME_BYTES) {
      yield chunk.subarray(from, from + MAX_INPUT_FRAME_BYTES);
    }
  }
}
