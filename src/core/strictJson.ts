/** JSON for signed text: as `JSON.parse`, but a member that stands twice in one object is refused. */

/**
 * RFC 8259, 4 leaves the meaning of a repeated name open, and RFC 7519, 4 lets a reader refuse it:
 * two readers of one signed text must not see two different claims.
 * @throws SyntaxError
 */
export function parseStrictJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (hasRepeatedMember(text)) throw new SyntaxError('an object has two members of the same name');
  return value;
}

/** A string, or a character that opens, closes or names; all else of sound JSON is skipped. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]/g;

/** Relies on `text` being sound JSON, so a string followed by a colon is a member's name. */
function hasRepeatedMember(text: string): boolean {
  /** Names seen in each value that is open; arrays hold none. */
  const open: Set<string>[] = [];
  let lastString = '';
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') open.push(new Set());
    else if (token === '}' || token === ']') open.pop();
    else if (token === ':') {
      const names = open.at(-1);
      const name: string = JSON.parse(lastString);
      if (names?.has(name)) return true;
      names?.add(name);
    } else lastString = token;
  }
  return false;
}
