/** `ctx terminal watch`: the output of a terminal, byte for byte. */
import { Command, Option } from 'commander';
import type { WatchRequestInit } from '../../client/watch.js';
import type { ExitStatus } from '../../gen/public/grantty/v1/terminal_pb.js';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { UsageError } from '../exitCode.js';
import { isLoss, LOSS_NOTE, rewindNote } from '../interruption.js';
import { note, writeBytes } from '../output.js';
import { parseCount } from '../values.js';

export interface WatchFlags extends ConnectionFlags {
  readonly afterSeq?: bigint;
  readonly tailBytes?: bigint;
  readonly live?: boolean;
  readonly follow: boolean;
  readonly sanitize?: boolean;
  readonly json?: boolean;
}

export function watchCommand(): Command {
  return withConnectionFlags(
    new Command('watch')
      .alias('logs')
      .description('print the output of a terminal, from its beginning, until it exits')
      .argument('<id>', 'terminal')
      .addOption(
        new Option('--after-seq <n>', 'start after this sequence number')
          .argParser((text) => parseCount('--after-seq', text))
          .conflicts(['tailBytes', 'live']),
      )
      .addOption(
        new Option('--tail-bytes <n>', 'start with about the last n bytes')
          .argParser((text) => parseCount('--tail-bytes', text))
          .conflicts('live'),
      )
      .option('--live', 'start with what is printed from now on')
      .option('--no-follow', 'stop where the history ends')
      .option('--sanitize', 'strip what could act on this terminal: controls and escape sequences'),
  )
    .option('--json', 'print one event a line as JSON')
    .action(
      action(async (id: string, flags: WatchFlags) => {
        const [{ WatchResponseSchema }, { create }, { writeJson }, { Sanitizer }, { noteEnding }] =
          await Promise.all([
            import('../../gen/public/grantty/v1/terminal_service_pb.js'),
            import('@bufbuild/protobuf'),
            import('../json.js'),
            import('../sanitizer.js'),
            import('../processExit.js'),
          ]);
        using connection = await openConnection(flags);
        const request = watchRequest(connection.ref(id), flags);
        const sanitizer = flags.sanitize ? new Sanitizer() : undefined;
        const events = connection.client.watch(request, {
          onInterruption: (failure, attempt) => {
            if (attempt === 1 && isLoss(failure)) note(LOSS_NOTE);
          },
          onRewind: (lastSeq) => note(rewindNote(lastSeq)),
        });
        let ended: ExitStatus | undefined;
        for await (const event of events) {
          // Of several ends the last one counts, where nothing came after it.
          if (event.case === 'exited') ended = event.value.status;
          else if (event.case === 'output') ended = undefined;
          if (flags.json) {
            await writeJson(WatchResponseSchema, create(WatchResponseSchema, { event }));
          } else if (event.case === 'output') {
            const { data } = event.value;
            await writeBytes(sanitizer ? sanitizer.push(data) : data);
          }
        }
        if (sanitizer && !flags.json) await writeBytes(sanitizer.end());
        noteEnding(ended);
      }),
    );
}

export function watchRequest(
  terminal: { readonly id: string; readonly owner?: string },
  flags: WatchFlags,
): WatchRequestInit {
  if (flags.live && !flags.follow) throw new UsageError('--live has nothing without following');
  const request = { terminal, follow: flags.follow };
  if (flags.afterSeq !== undefined) {
    return { ...request, start: { case: 'after', value: { afterSeq: flags.afterSeq } } };
  }
  if (flags.tailBytes !== undefined) {
    return { ...request, start: { case: 'tailBytes', value: flags.tailBytes } };
  }
  return flags.live ? { ...request, start: { case: 'live', value: true } } : request;
}
