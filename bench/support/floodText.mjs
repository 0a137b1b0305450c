// What floods: a file of text, and how many bytes a terminal makes of it.

import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { join } from 'node:path';

const LINE =
  'The quick brown fox jumps over the lazy dog while 0123456789 bytes flow through a terminal.\n';

/** A file of lines, `bytes` long or a line less. A terminal prints each line with a carriage return. */
export async function floodText(bench, bytes) {
  const lines = Math.floor(bytes / LINE.length);
  const file = join(bench.dir, `flood-${lines}`);
  const out = createWriteStream(file);
  const block = Buffer.from(LINE.repeat(10_000));
  for (let left = lines * LINE.length; left > 0; left -= block.length) {
    if (!out.write(block.subarray(0, Math.min(left, block.length)))) await once(out, 'drain');
  }
  out.end();
  await once(out, 'finish');
  /** Prints the first line that every contestant waits for, then the text once a line was typed. */
  const flood = (shell, printed) => ({ shell, command: ['/bin/sh', '-c', shell], printed });
  return {
    file,
    /** As a terminal is by default: a carriage return before each newline, and the line is echoed. */
    ...flood(`echo ready; read go; cat ${file}`, 2 + lines * (LINE.length + 1)),
    /** Byte for byte: what the kernel does least for. */
    raw: flood(
      `stty -opost -echo; printf 'ready\\r\\n'; read go; cat ${file}`,
      lines * LINE.length,
    ),
  };
}
