/** Plain text of raw output, line by line: escape sequences and other controls taken out. */

/** UTF-16 units of a line; a longer one is broken there. */
export const MAX_TEXT_LINE = 8 * 1024;

const BS = 0x08;
const LF = 0x0a;
const CR = 0x0d;
const ESC = 0x1b;
const BEL = 0x07;

/**
 * `text`: printable output. `escape`: after ESC. `csi`: until a final byte. `string`: OSC, DCS, APC,
 * PM or SOS, until BEL or ST. `intermediate`: an escape sequence with a byte to come. (ECMA-48)
 */
type State = 'text' | 'escape' | 'csi' | 'string' | 'stringEscape' | 'intermediate';

/**
 * Cheap where an emulator is dear: it knows lines, carriage returns and backspaces, and no cursor
 * movement. Sequences and characters may be split anywhere over calls.
 */
export class OutputText {
  readonly #decoder = new TextDecoder();
  #state: State = 'text';
  #line = '';
  #returned = false;

  /** The line that has not ended. */
  get line(): string {
    return this.#line;
  }

  /** Takes the next bytes and gives the lines that ended in them. */
  push(data: Uint8Array): string[] {
    const lines: string[] = [];
    const text = this.#decoder.decode(data, { stream: true });
    let begin = 0;
    for (let index = 0; index < text.length; index += 1) {
      const code = text.charCodeAt(index);
      if (this.#state === 'text') {
        if (code >= 0x20 && code !== 0x7f) continue;
        this.#append(text.slice(begin, index), lines);
        this.#control(code, lines);
      } else this.#sequence(code);
      begin = index + 1;
    }
    if (this.#state === 'text') this.#append(text.slice(begin), lines);
    return lines;
  }

  #append(text: string, lines: string[]): void {
    if (text === '') return;
    // What follows a lone carriage return is printed over the line.
    if (this.#returned) this.#line = '';
    this.#returned = false;
    this.#line += text;
    while (this.#line.length > MAX_TEXT_LINE) {
      lines.push(this.#line.slice(0, MAX_TEXT_LINE));
      this.#line = this.#line.slice(MAX_TEXT_LINE);
    }
  }

  #control(code: number, lines: string[]): void {
    if (code === LF) {
      lines.push(this.#line);
      this.#line = '';
      this.#returned = false;
    } else if (code === CR) this.#returned = true;
    else if (code === BS) this.#line = this.#line.slice(0, -1);
    else if (code === ESC) this.#state = 'escape';
    else if (code === 0x09) this.#append('\t', lines);
  }

  #sequence(code: number): void {
    switch (this.#state) {
      case 'escape':
        if (code === 0x5b) this.#state = 'csi';
        else if ('P]X^_'.includes(String.fromCharCode(code))) this.#state = 'string';
        else this.#state = code >= 0x20 && code < 0x30 ? 'intermediate' : 'text';
        return;
      case 'csi':
        if (code === ESC) this.#state = 'escape';
        else if (code >= 0x40) this.#state = 'text';
        return;
      case 'intermediate':
        if (code >= 0x30) this.#state = 'text';
        return;
      case 'string':
        if (code === BEL) this.#state = 'text';
        else if (code === ESC) this.#state = 'stringEscape';
        return;
      case 'stringEscape':
        // ST ends the string; anything else began another sequence.
        this.#state = 'text';
        if (code !== 0x5c) this.#sequenceFrom(code);
        return;
      case 'text':
        return;
    }
  }

  #sequenceFrom(code: number): void {
    this.#state = 'escape';
    this.#sequence(code);
  }
}
