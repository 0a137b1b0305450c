/** Keys by name, as bytes: what a terminal of the xterm family sends for them. */
import { fieldInvalid } from './errors.js';

const ESC = '\x1b';

/** CSI final letter of the keys whose modified form is `ESC [ 1 ; m X`. */
const LETTER_KEYS: Readonly<Record<string, string>> = {
  up: 'A',
  down: 'B',
  right: 'C',
  left: 'D',
  home: 'H',
  end: 'F',
};

/** As above, but sent as `ESC O X` when unmodified. */
const SS3_KEYS: Readonly<Record<string, string>> = { f1: 'P', f2: 'Q', f3: 'R', f4: 'S' };

/** Number of the keys whose form is `ESC [ n ~`, modified `ESC [ n ; m ~`. */
const NUMBER_KEYS: Readonly<Record<string, number>> = {
  insert: 2,
  delete: 3,
  pageup: 5,
  pagedown: 6,
  f5: 15,
  f6: 17,
  f7: 18,
  f8: 19,
  f9: 20,
  f10: 21,
  f11: 23,
  f12: 24,
};

const CHARACTER_KEYS: Readonly<Record<string, string>> = {
  enter: '\r',
  tab: '\t',
  escape: ESC,
  space: ' ',
  backspace: '\x7f',
  comma: ',',
};

const ALIASES: Readonly<Record<string, string>> = {
  return: 'enter',
  esc: 'escape',
  bspace: 'backspace',
  ins: 'insert',
  del: 'delete',
  pgup: 'pageup',
  pgdn: 'pagedown',
  btab: 's-tab',
};

interface Modifiers {
  readonly control: boolean;
  readonly meta: boolean;
  readonly shift: boolean;
}

/**
 * A list of keys separated by commas: `C-c,Up,Enter,F1,M-x,S-Tab,q`. A single character stands for
 * itself; `C-` (or `ctrl-`), `M-` (or `alt-`) and `S-` (or `shift-`) modify. Names are not case
 * sensitive.
 * @throws FIELD_INVALID naming the key that is not known
 */
export function parseKeys(field: string, list: string): Uint8Array {
  const keys = list.split(',').map((key) => keyText(field, key.trim()));
  return Buffer.from(keys.join(''), 'utf8');
}

function keyText(field: string, key: string): string {
  const alias = ALIASES[key.toLowerCase()];
  const { name, modifiers } = splitModifiers(alias ?? key);
  const text = [...name].length === 1 ? character(name, modifiers) : named(name, modifiers);
  if (text === undefined)
    throw fieldInvalid(
      field,
      `"${key}" is not a key; keys are like Enter, Up, F1, C-c, M-x, or one character`,
    );
  return text;
}

function splitModifiers(key: string): { name: string; modifiers: Modifiers } {
  let name = key;
  const modifiers = { control: false, meta: false, shift: false };
  for (;;) {
    const match = /^(c|ctrl|m|alt|s|shift)-(.+)$/is.exec(name);
    const [, modifier, rest] = match ?? [];
    if (modifier === undefined || rest === undefined) break;
    if (/^c/i.test(modifier)) modifiers.control = true;
    else if (/^s/i.test(modifier)) modifiers.shift = true;
    else modifiers.meta = true;
    name = rest;
  }
  return { name: ALIASES[name.toLowerCase()] ?? name, modifiers };
}

function character(plain: string, modifiers: Modifiers): string | undefined {
  const shifted = modifiers.shift ? plain.toUpperCase() : plain;
  const text = modifiers.control ? controlCharacter(plain) : shifted;
  if (text === undefined) return undefined;
  return modifiers.meta ? ESC + text : text;
}

/** C0 control that Ctrl with a key makes: the key's code without its upper bits. */
function controlCharacter(key: string): string | undefined {
  if (key === ' ') return '\0';
  if (key === '?') return '\x7f';
  const code = key.toUpperCase().charCodeAt(0);
  return code >= 0x40 && code <= 0x5f ? String.fromCharCode(code & 0x1f) : undefined;
}

function named(name: string, modifiers: Modifiers): string | undefined {
  const key = name.toLowerCase();
  const text = CHARACTER_KEYS[key];
  if (text !== undefined) {
    if (key === 'tab' && modifiers.shift) return `${ESC}[Z`;
    if (key === 'space' || key === 'comma') return character(text, modifiers);
    if (modifiers.control) return undefined;
    return modifiers.meta ? ESC + text : text;
  }
  // xterm's parameter: 1 plus 1 for shift, 2 for meta, 4 for control.
  const code =
    1 + (modifiers.shift ? 1 : 0) + (modifiers.meta ? 2 : 0) + (modifiers.control ? 4 : 0);
  const number = NUMBER_KEYS[key];
  if (number !== undefined) return code === 1 ? `${ESC}[${number}~` : `${ESC}[${number};${code}~`;
  const letter = LETTER_KEYS[key] ?? SS3_KEYS[key];
  if (letter === undefined) return undefined;
  if (code !== 1) return `${ESC}[1;${code}${letter}`;
  return key in SS3_KEYS ? `${ESC}O${letter}` : `${ESC}[${letter}`;
}

const PASTE_BEGIN = Buffer.from(`${ESC}[200~`);
const PASTE_END = Buffer.from(`${ESC}[201~`);

/**
 * The text as a bracketed paste. What would end the paste early is taken out, so that no part of
 * the text reaches the program as typed.
 */
export function bracketedPaste(text: Uint8Array): Uint8Array {
  // Taking a mark out can join its neighbours to another one, hence until there is none.
  let clean = Buffer.from(text);
  while (clean.includes(PASTE_END)) clean = Buffer.concat(split(clean, PASTE_END));
  return Buffer.concat([PASTE_BEGIN, clean, PASTE_END]);
}

function split(bytes: Buffer, mark: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  let from = 0;
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, from)) {
    parts.push(bytes.subarray(from, at));
    from = at + mark.length;
  }
  parts.push(bytes.subarray(from));
  return parts;
}
