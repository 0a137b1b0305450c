// How figures are taken: contestants in turn, medians, and the noise beside them.

/**
 * Runs every contestant once a round, in the same order, so that what disturbs the machine disturbs
 * all. Ends after `rounds`, or with the round in which the time is over.
 */
export async function interleave(contestants, { rounds, seconds = 60 }) {
  const samples = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
  const begin = performance.now();
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, measure] of Object.entries(contestants))
      samples[name].push(await measure(round));
    if (performance.now() - begin > seconds * 1000) break;
  }
  return samples;
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * A row of the table. `ours` and `reference` are samples, or nothing where there is no reference;
 * `atLeast` and `atMost` are targets of the ratio of the medians, or of the median without a
 * reference.
 */
export function rowOf({ name, unit, ours, reference, referenceName, atLeast, atMost, note }) {
  const own = median(ours);
  const other = reference && median(reference);
  const ratio = other === undefined ? undefined : own / other;
  const judged = ratio ?? own;
  const target =
    atLeast !== undefined ? `≥ ${atLeast}` : atMost !== undefined ? `≤ ${atMost}` : null;
  const met = target === null ? null : atLeast !== undefined ? judged >= atLeast : judged <= atMost;
  return {
    name,
    unit,
    ours: round(own),
    reference: other === undefined ? null : round(other),
    reference_name: referenceName ?? null,
    ratio: ratio === undefined ? null : round(ratio),
    target,
    met,
    runs: ours.length,
    ours_range: rangeOf(ours),
    reference_range: reference ? rangeOf(reference) : null,
    ...(note && { note }),
  };
}

function rangeOf(values) {
  return [round(Math.min(...values)), round(Math.max(...values))];
}

/** Four digits are more than any of this is good for. */
function round(value) {
  return Number(value.toPrecision(4));
}
