/** Which tokens descend from which, and what became of them. */
import { readRecords } from './reading.js';
import { nameKey, type WrittenName, type WrittenToken } from './writtenRecords.js';

export interface TreeNode extends WrittenName {
  /** Absent where the token was never presented, so that only its name is known. */
  readonly sub?: string;
  /** The latest first. */
  readonly actors: readonly string[];
  /** Seconds since the Unix epoch. */
  readonly iat?: number;
  readonly exp?: number;
  /** Ids of its grants. */
  readonly grants: readonly string[];
  /** Milliseconds since the Unix epoch, of a revocation by its name. */
  readonly revoked_ms?: number;
  readonly children: readonly TreeNode[];
}

/**
 * All lines of delegation, or the one that a token is in. Reads the trail twice and keeps what
 * tokens were delegated; those that nothing descends from and that descend from nothing are no tree.
 */
export async function lineageTree(dir: string, jti?: string): Promise<readonly TreeNode[]> {
  const children = await edgesOf(dir, jti);
  const names = new Map<string, WrittenName>();
  for (const [parent, below] of children) {
    names.set(parent, asName(parent));
    for (const child of below) names.set(child, asName(child));
  }
  const tokens = new Map<string, WrittenToken>();
  const revoked = new Map<string, number>();
  for await (const record of readRecords(dir, ['token', 'revoked'])) {
    if (record.record === 'token') {
      const key = nameKey(record.principal);
      if (names.has(key)) tokens.set(key, record);
    } else if (record.jti !== undefined) {
      const key = nameKey({ iss: record.iss, jti: record.jti });
      if (names.has(key) && !revoked.has(key)) revoked.set(key, record.time_ms);
    }
  }
  /** `above`: a trail that was tampered with could have a token descend from itself. */
  const nodeOf = (key: string, above: readonly string[] = []): TreeNode => {
    const line = [...above, key];
    const token = tokens.get(key);
    const revokedMs = revoked.get(key);
    return {
      ...asName(key),
      ...(token && { sub: token.principal.sub, iat: token.iat, exp: token.exp }),
      actors: token?.actors ?? [],
      grants: token?.grants.map(({ id }) => id) ?? [],
      ...(revokedMs !== undefined && { revoked_ms: revokedMs }),
      children: [...(children.get(key) ?? [])]
        .filter((child) => !line.includes(child))
        .map((child) => nodeOf(child, line)),
    };
  };
  const below = new Set([...children.values()].flatMap((set) => [...set]));
  return [...children.keys()].filter((key) => !below.has(key)).map((key) => nodeOf(key));
}

/** Children by their parents. */
async function edgesOf(dir: string, jti: string | undefined): Promise<Map<string, Set<string>>> {
  const children = new Map<string, Set<string>>();
  const link = (line: readonly WrittenName[]) => {
    line.slice(1).forEach((child, index) => {
      const parent = nameKey(line[index] ?? child);
      const set = children.get(parent) ?? new Set();
      children.set(parent, set.add(nameKey(child)));
    });
  };
  for await (const record of readRecords(dir, ['token', 'delegated'])) {
    const line =
      record.record === 'token'
        ? [...record.lineage, record.principal]
        : [record.parent, record.child];
    if (line.length > 1) link(line);
  }
  return jti === undefined ? children : around(children, jti);
}

/** Only the lines that go through a token of this name. */
function around(children: Map<string, Set<string>>, jti: string): Map<string, Set<string>> {
  const kept = new Map<string, Set<string>>();
  const keep = (parent: string, child: string) => {
    const below = kept.get(parent) ?? new Set();
    if (below.has(child)) return false;
    kept.set(parent, below.add(child));
    return true;
  };
  const keepBelow = (key: string) => {
    for (const child of children.get(key) ?? []) {
      if (keep(key, child)) keepBelow(child);
    }
  };
  const keepAbove = (key: string) => {
    for (const [parent, below] of children) {
      if (below.has(key) && keep(parent, key)) keepAbove(parent);
    }
  };
  const all = new Set([...children.keys(), ...[...children.values()].flatMap((set) => [...set])]);
  for (const key of all) {
    if (asName(key).jti !== jti) continue;
    keepBelow(key);
    keepAbove(key);
  }
  return kept;
}

function asName(key: string): WrittenName {
  const [iss, jti] = JSON.parse(key);
  return { iss, jti };
}
