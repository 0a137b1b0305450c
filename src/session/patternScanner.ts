/** Looks for a pattern in the plain text of raw output, event by event. */
import type { RE2JS } from 're2js';
import { OutputText } from './outputText.js';
import { compilePattern } from './pattern.js';

/**
 * A line is searched when it ends, and as far as it has come at the end of each event, so that a
 * prompt without a line feed is found. No match spans lines.
 */
export class PatternScanner {
  readonly #pattern: RE2JS;
  readonly #text = new OutputText();

  /** @throws FIELD_INVALID for `pattern` */
  constructor(pattern: string) {
    this.#pattern = compilePattern(pattern);
  }

  /** Whether the pattern is found in what has come so far and was not looked at before. */
  matches(data: Uint8Array): boolean {
    const ended = this.#text.push(data);
    return [...ended, this.#text.line].some((line) => this.#pattern.matcher(line).find());
  }
}
