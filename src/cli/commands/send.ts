/** `ctx terminal send`: types a text into a session and prints what comes of it until it is ready again. */
import { Command } from 'commander';
import type { Client } from '../../client/connect.js';
import type { SendEvent } from '../../client/send.js';
import type { SendResult } from '../../gen/public/grantty/v1/session_service_pb.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { ExitCode } from '../exitCode.js';
import { readAll } from '../input.js';
import { isLoss, LOSS_NOTE } from '../interruption.js';
import { note, writeBytes } from '../output.js';
import { parseDuration } from '../values.js';

interface Flags extends ConnectionFlags {
  readonly submit: boolean;
  readonly timeout?: number;
  readonly json?: boolean;
}

export function sendCommand(): Command {
  return withConnectionFlags(
    new Command('send')
      .description(
        'type a text into a session and print what comes of it until it is ready for more; 124 after the time-out, while the send goes on',
      )
      .argument('<id>', 'session')
      .argument('<text>', 'text, or - for standard input; an empty one with --no-submit only waits')
      .option('--no-submit', 'do not press Enter after it')
      .option('--timeout <duration>', 'how long to wait (default: 30s)', parseDuration),
  )
    .option('--json', 'print one event a line as JSON')
    .action(
      action(async (id: string, text: string, flags: Flags) => {
        const [
          { SendResponseSchema, WaitReason },
          { create },
          { durationFromMs },
          { writeJson },
          { endingNotes },
        ] = await Promise.all([
          import('../../gen/public/grantty/v1/session_service_pb.js'),
          import('@bufbuild/protobuf'),
          import('@bufbuild/protobuf/wkt'),
          import('../json.js'),
          import('../sendEnding.js'),
        ]);
        using connection = await openConnection(flags);
        const request = {
          terminal: connection.ref(id),
          text: text === '-' ? Buffer.from(await readAll(process.stdin)).toString() : text,
          submit: flags.submit,
          ...(flags.timeout !== undefined && { timeout: durationFromMs(flags.timeout) }),
        };
        const printed = new PrintedText();
        let ended: SendResult | undefined;
        let isCut = false;
        for await (const event of events(connection.client, request)) {
          if (flags.json)
            await writeJson(SendResponseSchema, create(SendResponseSchema, { event }));
          else if (event.case === 'delta') await printed.write(event.value.text);
          else if (event.case === 'result') await printed.end(event.value.viewport);
          if (event.case === 'result') ended = event.value;
          else if (event.case === 'delta' && event.value.truncated) isCut = true;
        }
        for (const line of ended ? endingNotes(ended, isCut) : []) note(line);
        return ended?.waitReason === WaitReason.TIMEOUT ? ExitCode.TIMED_OUT : ExitCode.OK;
      }),
    );
}

function events(client: Client, request: Parameters<Client['send']>[0]): AsyncIterable<SendEvent> {
  return client.send(request, {
    onInterruption: (failure, attempt) => {
      if (attempt === 1 && isLoss(failure)) note(LOSS_NOTE);
    },
  });
}

/** Rendered text as a whole number of lines: a prompt has no line feed behind it. */
class PrintedText {
  #last = '\n';

  async write(text: string): Promise<void> {
    if (text === '') return;
    this.#last = text.slice(-1);
    await writeBytes(text);
  }

  async end(text: string): Promise<void> {
    await this.write(text);
    if (this.#last !== '\n') await writeBytes('\n');
  }
}
