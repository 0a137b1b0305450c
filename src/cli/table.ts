/** Tables and records for people. */

/** Columns padded to their widest cell; the last one is not padded. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, ...rows].map((row) => row.map(plain));
  const widths = head.map((_, column) => Math.max(...lines.map((row) => width(row[column] ?? ''))));
  return lines
    .map((row) =>
      row
        .map((cell, column) => pad(cell, widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** One `name  value` a line, values aligned; entries without a value are left out. */
export function formatRecord(entries: readonly (readonly [string, string | undefined])[]): string {
  const shown = entries.filter(([, value]) => value !== undefined && value !== '');
  const widest = Math.max(...shown.map(([name]) => width(name)));
  return shown.map(([name, value]) => `${pad(name, widest)}  ${plain(value ?? '')}`).join('\n');
}

/** What a cell may hold: controls of any kind could move the cursor or hide text. */
export function plain(cell: string): string {
  return cell.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\ufffd');
}

/** Characters, not columns: names and states are ASCII, and a title is off by little. */
function width(text: string): number {
  return [...text].length;
}

function pad(text: string, columns: number): string {
  return text + ' '.repeat(Math.max(0, columns - width(text)));
}
