/**
 * Recordings in the asciicast formats, versions 2 and 3 (docs.asciinema.org/manual/asciicast/): a
 * header, then one event a line. They are text: bytes that are no UTF-8 become U+FFFD.
 */

export type AsciicastVersion = 2 | 3;

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface RecordingHeader {
  readonly size: Size;
  /** Microseconds since the Unix epoch: when the first event happened. */
  readonly startMicros: number;
  readonly command?: string;
  readonly title?: string;
  readonly term: string;
}

/** The two differ in the shape of the header, in how time is told, and in who knows an exit. */
export class Asciicast {
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  /** Of the last event; never goes back, though clocks may. */
  #lastMicros: number;
  #replaced = false;

  constructor(
    private readonly version: AsciicastVersion,
    private readonly about: RecordingHeader,
  ) {
    this.#lastMicros = about.startMicros;
  }

  /** Whether something stands in the recording that was no UTF-8. */
  get replaced(): boolean {
    return this.#replaced;
  }

  header(): string {
    const { size, startMicros, command, title, term } = this.about;
    const shared = {
      timestamp: Math.floor(startMicros / 1e6),
      ...(command !== undefined && { command }),
      ...(title !== undefined && { title }),
    };
    const { columns, rows } = size;
    if (this.version === 3) {
      return line({ version: 3, term: { cols: columns, rows, type: term }, ...shared });
    }
    return line({ version: 2, width: columns, height: rows, ...shared, env: { TERM: term } });
  }

  /** A character that is cut in two comes whole, with the bytes that end it. */
  output(micros: number, bytes: Uint8Array): string {
    return this.#text(micros, this.#decoder.decode(bytes, { stream: true }));
  }

  resize(micros: number, { columns, rows }: Size): string {
    return this.#event(micros, 'r', `${columns}x${rows}`);
  }

  /** An exit after which the terminal was started again. */
  marker(micros: number, label: string): string {
    return this.#rest() + this.#event(micros, 'm', label);
  }

  /** The last of all; version 2 has no event for it. */
  exit(micros: number, code: number): string {
    return this.#rest() + (this.version === 3 ? this.#event(micros, 'x', String(code)) : '');
  }

  /** What was held back where output ends within a character. */
  end(): string {
    return this.#rest();
  }

  #rest(): string {
    return this.#text(this.#lastMicros, this.#decoder.decode());
  }

  #text(micros: number, text: string): string {
    if (text === '') return '';
    if (text.includes('\ufffd')) this.#replaced = true;
    return this.#event(micros, 'o', text);
  }

  #event(micros: number, code: string, data: string): string {
    const before = this.version === 3 ? this.#lastMicros : this.about.startMicros;
    this.#lastMicros = Math.max(this.#lastMicros, micros);
    return line([(this.#lastMicros - before) / 1e6, code, data]);
  }
}

function line(value: object): string {
  return `${JSON.stringify(value)}\n`;
}
