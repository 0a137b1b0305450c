/** The known name that was probably meant by one that nobody knows. */

/** Undefined where none is near. Case, `-` and `_` do not count: stateDir is state_dir. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const asked = folded(name);
  let best: string | undefined;
  let least = Math.max(1, Math.floor(asked.length / 3)) + 1;
  for (const one of known) {
    const distance = distanceOf(asked, folded(one));
    if (distance >= least) continue;
    least = distance;
    best = one;
  }
  return best;
}

function folded(name: string): string {
  return name.toLowerCase().replace(/[-_]/g, '');
}

/** Letters to add, leave out, change or swap with their neighbour: optimal string alignment. */
function distanceOf(a: string, b: string): number {
  let [before, last]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = a[i - 1] === b[j - 1] ? 0 : 1;
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        (last?.[j] ?? 0) + 1,
        (row[j - 1] ?? 0) + 1,
        (last?.[j - 1] ?? 0) + change,
        isSwapped ? (before?.[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, last] = [last, row];
  }
  return last?.[b.length] ?? 0;
}
