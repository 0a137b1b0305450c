/** From the emulator's rows to lines: rows that the terminal wrapped are joined. */
import type { IBuffer, IBufferLine } from '@xterm/headless';

/** Rows of one line at most, and cells at about most; a longer one is broken there. */
export const MAX_LINE_ROWS = 256;
const MAX_LINE_CELLS = 32 * 1024;

/** Row after the line that begins at `row`; at most `end`. */
export function lineEnd(buffer: IBuffer, row: number, end: number, cols: number): number {
  const longest = Math.min(MAX_LINE_ROWS, Math.max(1, Math.floor(MAX_LINE_CELLS / cols)));
  let next = row + 1;
  while (next < end && next - row < longest && buffer.getLine(next)?.isWrapped) next += 1;
  return next;
}

/** The text of rows `begin` to `end`, which are one line; trailing blanks cut. */
export function lineText(buffer: IBuffer, begin: number, end: number): string {
  if (end - begin === 1) return rowText(buffer, begin);
  let text = '';
  for (let row = begin; row < end; row += 1) {
    const line = buffer.getLine(row);
    if (!line) break;
    const last = row + 1 === end;
    text += line.translateToString(last, 0, last ? undefined : filledCells(line));
  }
  return withoutTrailingBlanks(text);
}

/** The text of one row, trailing blanks cut: those that were printed too. */
export function rowText(buffer: IBuffer, row: number): string {
  return withoutTrailingBlanks(buffer.getLine(row)?.translateToString(true) ?? '');
}

/** The lines of rows `begin` to `end`. */
export function linesOf(buffer: IBuffer, begin: number, end: number, cols: number): string[] {
  const lines: string[] = [];
  let row = begin;
  while (row < end) {
    const next = lineEnd(buffer, row, end, cols);
    lines.push(lineText(buffer, row, next));
    row = next;
  }
  return lines;
}

/** Row after the last one that shows something or holds the cursor. */
export function usedRows(buffer: IBuffer): number {
  const cursorRow = buffer.baseY + buffer.cursorY;
  let row = buffer.length - 1;
  while (row > cursorRow && rowText(buffer, row) === '') row -= 1;
  return row + 1;
}

function withoutTrailingBlanks(text: string): string {
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) === 0x20) end -= 1;
  return end === text.length ? text : text.slice(0, end);
}

/** A wide character that did not fit leaves the last cell of a wrapped row without any. */
function filledCells(line: IBufferLine): number {
  const last = line.getCell(line.length - 1);
  return last?.getWidth() === 1 && last.getCode() === 0 ? line.length - 1 : line.length;
}
