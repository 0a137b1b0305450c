/** Selectors of a grant: which names of owners, agents, sessions and terminals it reaches. */
import { fieldInvalid } from './errors.js';
import { isName, type Name } from './names.js';

/** An exact name, `prefix*`, or `*`, which is the empty prefix. */
export type Selector = string & { readonly __brand: 'Selector' };

/** What a name can begin with. */
const PREFIX = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$/;

/** The superuser as an owner: reached only by a selector that names it. */
const ROOT_OWNER = '0';

export function isSelector(text: string): text is Selector {
  if (!text.endsWith('*')) return isName(text);
  const prefix = text.slice(0, -1);
  return prefix === '' || PREFIX.test(prefix);
}

/** Checks `text`; `field` is the path that the error names. */
export function parseSelector(field: string, text: unknown): Selector {
  if (typeof text === 'string' && isSelector(text)) return text;
  throw fieldInvalid(field, 'must be a name, a prefix of names followed by "*", or "*"');
}

export function selects(selector: Selector, name: Name): boolean {
  if (!selector.endsWith('*')) return name === (selector as string);
  return name.startsWith(selector.slice(0, -1));
}

/** As `selects`, for owners: neither `*` nor `prefix*` reaches the owner `0`. */
export function selectsOwner(selector: Selector, owner: Name): boolean {
  if (owner === ROOT_OWNER) return selector === (owner as string);
  return selects(selector, owner);
}

/** The name that the selector spells out; undefined for `prefix*` and `*`. */
export function exactName(selector: Selector): Name | undefined {
  return isName(selector) ? selector : undefined;
}

/** Whether every name that `inner` reaches is reached by `outer`: an exact name, below a prefix, below `*`. */
export function isWithinSelector(inner: Selector, outer: Selector): boolean {
  const name = exactName(inner);
  if (name !== undefined) return selects(outer, name);
  return outer.endsWith('*') && inner.slice(0, -1).startsWith(outer.slice(0, -1));
}

/** As `isWithinSelector`, for owners. */
export function isWithinOwnerSelector(inner: Selector, outer: Selector): boolean {
  const name = exactName(inner);
  return name === undefined ? isWithinSelector(inner, outer) : selectsOwner(outer, name);
}
