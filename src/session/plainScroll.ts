/** Where output begins that scrolls a whole screen away, whatever was on it. */

/** SGR and EL: CSI with parameters, then `m` or `K`; they move no cursor. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them.
const IN_PLACE = /^\x1b\[[\d;:]*[mK]/;
const MAX_IN_PLACE_BYTES = 64;

/**
 * Index of the last of these pieces from whose begin on more than `lines` line feeds come without
 * anything that moves the cursor otherwise; -1: there is none.
 */
export function lastScroll(
  pieces: readonly { readonly data?: Uint8Array }[],
  lines: number,
): number {
  let following = 0;
  for (let index = pieces.length - 1; index >= 0; index -= 1) {
    const data = pieces[index]?.data ?? new Uint8Array();
    const end = plainEnd(data);
    following = countLineFeeds(data.subarray(0, end)) + (end === data.length ? following : 0);
    if (following > lines) return index;
  }
  return -1;
}

export function countLineFeeds(data: Uint8Array): number {
  let count = 0;
  for (let index = 0; index < data.length; index += 1) if (data[index] === 0x0a) count += 1;
  return count;
}

/** Where the first escape sequence begins that may move the cursor. */
function plainEnd(data: Uint8Array): number {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  let at = bytes.indexOf(0x1b);
  while (at >= 0) {
    const inPlace = IN_PLACE.exec(bytes.toString('latin1', at, at + MAX_IN_PLACE_BYTES));
    if (!inPlace) return at;
    at = bytes.indexOf(0x1b, at + inPlace[0].length);
  }
  return bytes.length;
}
