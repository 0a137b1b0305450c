/** Tables and records for people. */

/** Columns padded to their widest cell; the last one is not padded. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const columns = new Columns(head);
  columns.fit(rows);
  return [head, ...rows].map((row) => columns.line(row)).join('\n');
}

/** How wide the columns of a table are, whose rows may come one by one. */
export class Columns {
  readonly #widths: number[];

  constructor(head: readonly string[]) {
    this.#widths = head.map(width);
  }

  /** Makes room for these rows; a wider one that comes later pushes its own cells aside. */
  fit(rows: readonly (readonly string[])[]): void {
    for (const row of rows) {
      row.forEach((cell, at) => {
        this.#widths[at] = Math.max(this.#widths[at] ?? 0, width(plain(cell)));
      });
    }
  }

  line(row: readonly string[]): string {
    return row
      .map((cell, at) => pad(plain(cell), this.#widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  }
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
