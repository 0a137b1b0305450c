/** What of a terminal's name a set of policies looks at: an answer holds for all that are alike in it. */
import type { CedarInstance } from './cedarEngine.js';
import type { PolicySet } from './cedarSet.js';

/** The attributes of a terminal in the schema. */
export const terminalParts = ['owner', 'agent', 'session', 'terminal'] as const;

export type TerminalPart = (typeof terminalParts)[number];

/** Entities that say nothing of a terminal. */
const OTHER_ENTITIES: readonly unknown[] = ['Grantty::Action', 'Grantty::Client'];

/**
 * Found in the policies' JSON form (docs.cedarpolicy.com/policies/json-format.html). Whatever uses the
 * terminal in another way than to read one attribute, or names a terminal, counts as reading all of it.
 */
export function partsRead(
  set: PolicySet,
  cedar: Pick<CedarInstance, 'policyToJson'>,
): ReadonlySet<TerminalPart> {
  const read = new Set<TerminalPart>();
  for (const { text } of set.policies) {
    const parsed = cedar.policyToJson(text);
    if (parsed.type === 'failure') return new Set(terminalParts);
    const { resource, conditions } = parsed.json;
    const isOpen = resource.op === 'All' || (resource.op === 'is' && !('in' in resource));
    if (!isOpen) return new Set(terminalParts);
    visit(conditions, read);
  }
  return read;
}

function visit(node: unknown, read: Set<TerminalPart>): void {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    if ((key === '.' || key === 'has') && isAccess(value)) {
      note(value.attr, read);
    } else if (key === 'Var' ? value === 'resource' : key === '__entity' && !isOther(value)) {
      for (const part of terminalParts) read.add(part);
    } else {
      visit(value, read);
    }
  }
}

/** Of an attribute of the terminal itself. */
function isAccess(node: unknown): node is { readonly attr: unknown } {
  if (typeof node !== 'object' || node === null || !('left' in node && 'attr' in node))
    return false;
  const { left } = node;
  return typeof left === 'object' && left !== null && 'Var' in left && left.Var === 'resource';
}

function note(attr: unknown, read: Set<TerminalPart>): void {
  const known = terminalParts.find((part) => part === attr);
  for (const part of known ? [known] : terminalParts) read.add(part);
}

function isOther(entity: unknown): boolean {
  return typeof entity === 'object' && entity !== null && 'type' in entity
    ? OTHER_ENTITIES.includes(entity.type)
    : false;
}
