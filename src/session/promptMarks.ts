/** Finds our shell's marks in raw output: a command begins, a prompt is ready. */

/** OSC 133 (semantic prompts): `C` before a command runs, `B` when the prompt has been printed. */
export type MarkKind = 'C' | 'B';

const BEL = '\x07';

/** The mark as the shell prints it. Without the secret it is somebody else's. */
export function promptMark(kind: MarkKind, secret: string): string {
  return `\x1b]133;${kind};grantty=${secret}${BEL}`;
}

/**
 * The marks of one session. They may be split over any number of reads, and nothing but the exact
 * bytes with the secret counts: what a program prints of its own does not.
 */
export class PromptMarks {
  readonly #begin: Buffer;
  readonly #marks: readonly { readonly kind: MarkKind; readonly bytes: Buffer }[];
  readonly #length: number;
  /** The end of what was read, as long as it may be the begin of a mark. */
  #rest: Buffer = Buffer.alloc(0);

  constructor(secret: string) {
    this.#marks = (['C', 'B'] as const).map((kind) => ({
      kind,
      bytes: Buffer.from(promptMark(kind, secret)),
    }));
    this.#begin = Buffer.from('\x1b]133;');
    this.#length = Math.max(...this.#marks.map(({ bytes }) => bytes.length));
  }

  /** The marks that are complete with these bytes, in order. */
  push(data: Uint8Array): MarkKind[] {
    const bytes = this.#rest.length === 0 ? asBuffer(data) : Buffer.concat([this.#rest, data]);
    const found: MarkKind[] = [];
    let at = bytes.indexOf(this.#begin);
    while (at >= 0) {
      const mark = this.#marks.find((each) => isAt(bytes, at, each.bytes));
      if (mark) found.push(mark.kind);
      at = bytes.indexOf(this.#begin, at + (mark?.bytes.length ?? 1));
    }
    this.#rest = Buffer.from(bytes.subarray(this.#openMark(bytes)));
    return found;
  }

  /** Where a mark begins that the end of `bytes` cuts; their length when none does. */
  #openMark(bytes: Buffer): number {
    let at = Math.max(0, bytes.length - this.#length + 1);
    for (at = bytes.indexOf(0x1b, at); at >= 0; at = bytes.indexOf(0x1b, at + 1)) {
      const rest = bytes.subarray(at);
      if (this.#marks.some((mark) => mark.bytes.subarray(0, rest.length).equals(rest))) return at;
    }
    return bytes.length;
  }
}

function isAt(bytes: Buffer, at: number, mark: Buffer): boolean {
  return bytes.subarray(at, at + mark.length).equals(mark);
}

function asBuffer(data: Uint8Array): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}
