/** ListTerminals: what the caller may read, filtered, in pages that stay put while terminals come and go. */
import { createHash } from 'node:crypto';
import { fieldInvalid } from '../core/errors.js';
import { isName, type Name } from '../core/names.js';
import type {
  TerminalFilter,
  TerminalService,
} from '../gen/public/grantty/v1/terminal_service_pb.js';
import type { Supervisor, TerminalSnapshot } from '../supervisor/api.js';
import type { ServerContext } from './context.js';
import { canonicalFilter, parseFilter } from './filter.js';
import type { Handlers } from './grpc.js';
import { callerOf } from './perform.js';
import { authorizeItems } from './sight.js';
import { encodeListTerminalsResponse, encodeTerminal } from './terminalBytes.js';

const DEFAULT_PAGE_SIZE = 100;
const MAX_PAGE_SIZE = 1000;

/** Bytes of encoded terminals after which a page ends, so that it fits a client's 4 MiB message. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

type ListHandler = NonNullable<Handlers<typeof TerminalService>['listTerminals']>;

export function listTerminals({ gate, supervisor }: ServerContext): ListHandler {
  return async ({ filter, pageSize, pageToken }, call) => {
    const sight = await authorizeItems(gate, callerOf(call), 'terminal.read');
    const matches = parseFilter(filter);
    if (pageSize > MAX_PAGE_SIZE) throw fieldInvalid('page_size', `must be 0 to ${MAX_PAGE_SIZE}`);
    const filterHash = hashOf(filter);
    const after = pageToken === '' ? undefined : parsePageToken(pageToken, filterHash);
    if (!sight.reachesAnything) return { terminals: [], nextPageToken: '' };

    const terminals: Uint8Array[] = [];
    let last: Position | undefined;
    let bytes = 0;
    const limit = (pageSize || DEFAULT_PAGE_SIZE) + 1;
    for await (const terminal of inParts(supervisor, matches.owner, after, limit)) {
      if (!matches.terminal(terminal) || !sight.sees(terminal.record)) continue;
      const isFull = terminals.length >= limit - 1 || bytes >= MAX_PAGE_BYTES;
      if (last && isFull) {
        return encodeListTerminalsResponse(terminals, pageTokenOf(last, filterHash));
      }
      const item = encodeTerminal(terminal, []);
      terminals.push(item);
      last = terminal.record;
      bytes += item.length;
    }
    return encodeListTerminalsResponse(terminals, '');
  };
}

/** Unique, and what lists are ordered by. */
type Position = Readonly<Record<'owner' | 'id', Name>>;

/** Terminals after a position, asked for a few at a time: most pages are full after the first few. */
async function* inParts(
  supervisor: Supervisor,
  owner: Name | undefined,
  begin: Position | undefined,
  limit: number,
): AsyncGenerator<TerminalSnapshot, void, undefined> {
  for (let after = begin; ; ) {
    const part = await supervisor.list(owner, { limit, ...(after && { after }) });
    yield* part;
    after = part.at(-1)?.record;
    if (part.length < limit) return;
  }
}

/** The last terminal of the page: the next one begins behind it, whether or not it still exists. */
function pageTokenOf({ owner, id }: Position, filterHash: string): string {
  return Buffer.from(JSON.stringify([owner, id, filterHash])).toString('base64url');
}

function parsePageToken(pageToken: string, filterHash: string): Position {
  const [owner, id, hash] = decodePageToken(pageToken);
  if (typeof owner !== 'string' || typeof id !== 'string' || !isName(owner) || !isName(id)) {
    throw fieldInvalid('page_token', 'is none that this server gave');
  }
  if (hash !== filterHash) throw fieldInvalid('page_token', 'belongs to another filter');
  return { owner, id };
}

function decodePageToken(pageToken: string): readonly unknown[] {
  try {
    const decoded: unknown = JSON.parse(Buffer.from(pageToken, 'base64url').toString());
    return Array.isArray(decoded) ? decoded : [];
  } catch {
    return [];
  }
}

function hashOf(filter: TerminalFilter | undefined): string {
  const text = JSON.stringify(canonicalFilter(filter));
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}
