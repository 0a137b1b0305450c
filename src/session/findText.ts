/** Finding a pattern in retained lines, newest first. */
import { textWidth } from './cellWidth.js';
import type { LineView } from './linePage.js';
import { compilePattern } from './pattern.js';

export const DEFAULT_MATCHES = 100;
export const MAX_MATCHES = 1_000;
/** UTF-8 bytes of a line or of a match that one answer quotes. */
const MAX_QUOTE_BYTES = 4 * 1024;
/** Milliseconds of searching after which others get their turn. */
const SLICE_MS = 10;

export interface TextMatch {
  /** Line, from 0 at the oldest kept. */
  readonly line: number;
  /** Cell where the match begins, from 0 at the left. */
  readonly column: number;
  /** The whole line, cut after 4 KiB. */
  readonly text: string;
  /** What matched, cut after 4 KiB. */
  readonly matched: string;
}

export interface FoundText {
  /** Newest line first, left to right within a line. */
  readonly matches: readonly TextMatch[];
  /** There are more. */
  readonly truncated: boolean;
  readonly totalLines: number;
}

/** The view must not change until it resolves. @throws FIELD_INVALID for `pattern` */
export async function findText(
  view: LineView,
  pattern: string,
  maxMatches = DEFAULT_MATCHES,
): Promise<FoundText> {
  const compiled = compilePattern(pattern);
  const { totalLines } = view;
  const matches: TextMatch[] = [];
  let sliceEnd = performance.now() + SLICE_MS;
  for (let line = totalLines - 1; line >= 0; line -= 1) {
    const text = view.line(line);
    const matcher = compiled.matcher(text);
    while (matcher.find()) {
      if (matches.length === maxMatches) return { matches, truncated: true, totalLines };
      matches.push({
        line,
        column: textWidth(text.slice(0, matcher.start())),
        text: quote(text),
        matched: quote(matcher.group() ?? ''),
      });
    }
    if (performance.now() < sliceEnd) continue;
    await new Promise<void>((resolve) => setImmediate(resolve));
    sliceEnd = performance.now() + SLICE_MS;
  }
  return { matches, truncated: false, totalLines };
}

/** Whole characters from the begin of `text`. */
function quote(text: string): string {
  if (Buffer.byteLength(text) <= MAX_QUOTE_BYTES) return text;
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(MAX_QUOTE_BYTES));
  return text.slice(0, read);
}
