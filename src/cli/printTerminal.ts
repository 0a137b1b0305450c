/** One terminal on standard output, for a person or a program. */
import type { Terminal } from '../gen/public/grantty/v1/terminal_pb.js';
import { writeLine } from './output.js';

export async function printTerminal(
  terminal: Terminal | undefined,
  json: boolean | undefined,
): Promise<void> {
  if (terminal === undefined) throw new TypeError('the server sent no terminal');
  if (json) {
    const { writeJson } = await import('./json.js');
    const { TerminalSchema } = await import('../gen/public/grantty/v1/terminal_pb.js');
    await writeJson(TerminalSchema, terminal);
  } else {
    const { terminalRecord } = await import('./record.js');
    await writeLine(terminalRecord(terminal));
  }
}
