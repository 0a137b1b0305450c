/** What makes a retried request recognisable: whose it is, and what it asks for. */
import { createHash } from 'node:crypto';
import { type DescMessage, type MessageShape, toJson } from '@bufbuild/protobuf';
import type { RequestMark } from '../core/terminal.js';
import { parseRequestId } from './fields.js';
import type { Permit } from './gate.js';

/**
 * Undefined when the caller gave no request id. Ids count per issuer, subject, method and terminal.
 * The body is hashed as JSON with sorted keys: clients encode a map in any order.
 */
export function requestMark<M extends DescMessage>(
  { token, key }: Pick<Permit, 'token' | 'key'>,
  method: string,
  schema: M,
  request: MessageShape<M> & { readonly requestId: string },
): RequestMark | undefined {
  const { issuer, subject } = token;
  return markOf([issuer, subject, method, key.owner, key.id], schema, request);
}

/** `whose` is what request ids count for. */
export function markOf<M extends DescMessage>(
  whose: readonly string[],
  schema: M,
  request: MessageShape<M> & { readonly requestId: string },
): RequestMark | undefined {
  const requestId = parseRequestId(request.requestId);
  if (requestId === undefined) return undefined;
  return {
    key: sha256(JSON.stringify([...whose, requestId])),
    bodyHash: sha256(JSON.stringify(toJson(schema, request), sortKeys)),
  };
}

function sortKeys(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
