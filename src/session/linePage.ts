/** Pages of retained lines, counted back from the newest. */
import type { TerminalReadRequest, TerminalReadResult } from './sessionTypes.js';

/** Lines of one page. */
export const MAX_PAGE_LINES = 500;
/** Bytes of one page in UTF-8; a single line is always shorter (see screenRows.ts). */
export const MAX_PAGE_BYTES = 256 * 1024;

/** Lines as they are kept: what scrolled away, then what is on the screen. */
export interface LineView {
  /** Lines dropped before the oldest kept. */
  readonly droppedLines: number;
  readonly totalLines: number;
  /** The line `index` lines after the oldest kept. */
  line(index: number): string;
}

/** Whole lines only: those that the limit of bytes leaves no room for are left out at the old end. */
export function readPage(view: LineView, request: TerminalReadRequest): TerminalReadResult {
  const offset = wholeNumber(request.offset ?? 0, 0, Number.MAX_SAFE_INTEGER);
  const count = wholeNumber(request.count ?? MAX_PAGE_LINES, 0, MAX_PAGE_LINES);
  const lineEnd = Math.max(0, view.totalLines - offset);
  const wanted = Math.max(0, lineEnd - count);
  const { text, begin } = newestLines(view, wanted, lineEnd, MAX_PAGE_BYTES);
  return {
    text,
    totalLines: view.totalLines,
    lineBegin: begin,
    lineEnd,
    truncated: view.droppedLines > 0 || begin > wanted,
    droppedLines: view.droppedLines,
  };
}

/** As many whole lines before `end`, not before `begin`, as fit into `maxBytes`. */
export function newestLines(
  view: LineView,
  begin: number,
  end: number,
  maxBytes: number,
): { readonly text: string; readonly begin: number } {
  const lines: string[] = [];
  let first = end;
  let bytes = 0;
  while (first > begin) {
    const line = view.line(first - 1);
    bytes += Buffer.byteLength(line) + 1;
    if (bytes > maxBytes) break;
    lines.push(line);
    first -= 1;
  }
  return {
    text: lines
      .reverse()
      .map((line) => `${line}\n`)
      .join(''),
    begin: first,
  };
}

function wholeNumber(value: number, min: number, max: number): number {
  if (!Number.isInteger(value) || value < min) {
    throw new RangeError(`a page needs a whole number of at least ${min}, not ${value}`);
  }
  return Math.min(value, max);
}
