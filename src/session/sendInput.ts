/** What a person's keys and pastes are in bytes: helpers to make the text of a send. */
import { fieldInvalid } from '../core/errors.js';
import type { InputModes } from './screenState.js';

/** Enter sends CR; the line discipline makes a line feed of it. */
export const ENTER = '\r';

/** Keys with one fixed sequence (xterm, terminfo xterm-256color). */
const FIXED: Readonly<Record<string, string>> = {
  Enter: ENTER,
  Tab: '\t',
  BTab: '\x1b[Z',
  Escape: '\x1b',
  Space: ' ',
  Backspace: '\x7f',
  Delete: '\x1b[3~',
  Insert: '\x1b[2~',
  PageUp: '\x1b[5~',
  PageDown: '\x1b[6~',
  F1: '\x1bOP',
  F2: '\x1bOQ',
  F3: '\x1bOR',
  F4: '\x1bOS',
  F5: '\x1b[15~',
  F6: '\x1b[17~',
  F7: '\x1b[18~',
  F8: '\x1b[19~',
  F9: '\x1b[20~',
  F10: '\x1b[21~',
  F11: '\x1b[23~',
  F12: '\x1b[24~',
};

/** Keys that DECCKM switches between CSI and SS3, by their final byte. */
const CURSOR: Readonly<Record<string, string>> = {
  Up: 'A',
  Down: 'B',
  Right: 'C',
  Left: 'D',
  Home: 'H',
  End: 'F',
};

/** A control key: `C-` and one of `@ A-Z [ \ ] ^ _`, in either case. */
const CONTROL = /^C-([@-_a-z])$/;
/** A key with Meta held: ESC goes before it. */
const META = /^M-(.+)$/;

/**
 * Named keys as a terminal in these modes sends them: names as above, `C-x`, `M-x`, or one
 * character.
 * @throws FIELD_INVALID for a name that is no key
 */
export function keysInput(keys: readonly string[], modes: InputModes): string {
  return keys.map((key) => keyInput(key, modes)).join('');
}

function keyInput(key: string, modes: InputModes): string {
  const fixed = Object.hasOwn(FIXED, key) ? FIXED[key] : undefined;
  if (fixed !== undefined) return fixed;
  const cursor = Object.hasOwn(CURSOR, key) ? CURSOR[key] : undefined;
  if (cursor !== undefined) return `\x1b${modes.applicationCursorKeys ? 'O' : '['}${cursor}`;
  const control = CONTROL.exec(key)?.[1];
  if (control) return String.fromCharCode(control.toUpperCase().charCodeAt(0) & 0x1f);
  const meta = META.exec(key)?.[1];
  if (meta) return `\x1b${keyInput(meta, modes)}`;
  if ([...key].length === 1) return key;
  throw fieldInvalid('keys', `"${key.slice(0, 32)}" is no key`);
}

const PASTE_BEGIN = '\x1b[200~';
const PASTE_END = '\x1b[201~';

/**
 * A paste: in brackets when the program asked for them, so that it takes no line of it for a
 * command. What could end the brackets early is taken out of the text.
 */
export function pasteInput(text: string, modes: InputModes): string {
  if (!modes.bracketedPaste) return text;
  return `${PASTE_BEGIN}${withoutPasteEnds(text)}${PASTE_END}`;
}

/** Taking one out may join another from what stood around it. */
function withoutPasteEnds(text: string): string {
  let cleaned = text;
  while (cleaned.includes(PASTE_END)) cleaned = cleaned.replaceAll(PASTE_END, '');
  return cleaned;
}
