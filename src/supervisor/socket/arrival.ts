/** Checks of what arrives on the socket, before it is taken for the type that it should be. */
import { isName, type Name } from '../../core/names.js';
import { unsound } from './protocol.js';

/** A part without which the message means nothing. */
export function required<T>(what: string, part: T | undefined): T {
  if (part === undefined) throw unsound(`a message without ${what}`);
  return part;
}

/** Paths are built from names: none is taken unchecked, whoever sent it. */
export function name(text: string): Name {
  if (isName(text)) return text;
  throw unsound('a text that is no name');
}

/** A word of a closed set. */
export function word<T extends string>(words: readonly T[], text: string): T {
  const found = words.find((known) => known === text);
  if (found === undefined) throw unsound(`an unknown word ${JSON.stringify(text.slice(0, 32))}`);
  return found;
}

/** Every property of T, so that a later one cannot be forgotten; those without a value fall away. */
type Every<T> = { readonly [Key in keyof Required<T>]: T[Key] | undefined };

/** An object of type T from all its properties, where an absent one is undefined. */
export function defined<T extends object>(properties: Every<T>): T {
  const present = Object.entries(properties).filter(([, value]) => value !== undefined);
  return Object.fromEntries(present) as T;
}
