/** How many cells a character takes: the emulator's answer and the one for columns of matches. */
import type { IUnicodeVersionProvider } from '@xterm/headless';

/**
 * Inclusive ranges of East Asian Width W and F (UAX #11, Unicode 15) but for the emoji, which a
 * property of the engine's own tables finds.
 */
const WIDE: readonly (readonly [from: number, to: number])[] = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x18d00, 0x18d08],
  [0x1aff0, 0x1b2fb],
  [0x1f200, 0x1f265],
  [0x20000, 0x2fffd],
  [0x30000, 0x3fffd],
];

/** Enclosing and non-spacing marks and format characters, which take no cell of their own. */
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const EMOJI = /^\p{Emoji_Presentation}$/u;
const ZERO_WIDTH_JOINER = 0x200d;
/** A flag is a pair of them, each one cell wide (UAX #11 calls them neutral). */
const REGIONAL_INDICATORS = [0x1f1e6, 0x1f1ff] as const;
/** Jamo that join the syllable before them. */
const HANGUL_JUNGSEONG = [0x1160, 0x11ff] as const;

/** Answers of the basic multilingual plane, 255 for one that was not asked for yet. */
const known = new Uint8Array(0x10000).fill(255);

export function cellWidth(codePoint: number): 0 | 1 | 2 {
  if (codePoint > 0xffff) return computeWidth(codePoint);
  const remembered = known[codePoint];
  if (remembered !== undefined && remembered !== 255) return remembered as 0 | 1 | 2;
  const width = computeWidth(codePoint);
  known[codePoint] = width;
  return width;
}

/** Cells that `text` takes from the left. */
export function textWidth(text: string): number {
  let cells = 0;
  for (const character of text) cells += cellWidth(character.codePointAt(0) ?? 0);
  return cells;
}

function computeWidth(codePoint: number): 0 | 1 | 2 {
  if (codePoint < 0x20 || (codePoint >= 0x7f && codePoint < 0xa0)) return 0;
  if (codePoint < 0x300) return 1;
  if (within(codePoint, HANGUL_JUNGSEONG)) return 0;
  if (within(codePoint, REGIONAL_INDICATORS)) return 1;
  const character = String.fromCodePoint(codePoint);
  if (ZERO_WIDTH.test(character)) return 0;
  if (EMOJI.test(character) || WIDE.some((range) => within(codePoint, range))) return 2;
  return 1;
}

function within(codePoint: number, [from, to]: readonly [number, number]): boolean {
  return codePoint >= from && codePoint <= to;
}

/**
 * The emulator's unicode version. Its own knows no emoji. What follows a zero-width joiner joins the
 * cell before, as tmux has it. A property packs (state << 3 | width << 1 | joins), as the emulator's
 * built-in provider does.
 */
export const unicodeVersion: IUnicodeVersionProvider = {
  version: 'grantty',
  wcwidth: cellWidth,
  charProperties(codePoint, preceding) {
    const width = cellWidth(codePoint);
    const precedingWidth = (preceding >> 1) & 3;
    const afterJoiner = preceding >> 3 === AFTER_JOINER;
    if (precedingWidth > 0 && (width === 0 || afterJoiner)) {
      const state = codePoint === ZERO_WIDTH_JOINER ? AFTER_JOINER : 0;
      return (state << 3) | (precedingWidth << 1) | 1;
    }
    return width << 1;
  },
};

const AFTER_JOINER = 1;
