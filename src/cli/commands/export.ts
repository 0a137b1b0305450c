/** `ctx terminal export`: the history of a terminal as a recording, to be played or read. */
import { Command, Option } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { isLoss, LOSS_NOTE, rewindNote } from '../interruption.js';
import { note, writeBytes } from '../output.js';
import type { ExportFormat } from '../recording.js';

interface Flags extends ConnectionFlags {
  readonly format: ExportFormat;
}

export function exportCommand(): Command {
  return withConnectionFlags(
    new Command('export')
      .description(
        'print what a terminal has printed so far as a recording for asciinema, or as plain text',
      )
      .argument('<id>', 'terminal')
      .addOption(
        new Option('--format <format>', 'of the recording')
          .choices(['asciicast-v2', 'asciicast-v3', 'text'])
          .default('asciicast-v2'),
      ),
  ).action(
    action(async (id: string, { format, ...flags }: Flags) => {
      const { recording } = await import('../recording.js');
      using connection = await openConnection(flags);
      const events = connection.client.watch(
        { terminal: connection.ref(id), follow: false },
        {
          onInterruption: (failure, attempt) => {
            if (attempt === 1 && isLoss(failure)) note(LOSS_NOTE);
          },
          onRewind: (lastSeq) => note(rewindNote(lastSeq)),
        },
      );
      for await (const piece of recording(format, events, note)) await writeBytes(piece);
    }),
  );
}
