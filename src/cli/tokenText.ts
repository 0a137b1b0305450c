/** A token's claims and grants as people read them. */
import type { UnverifiedToken } from './commands/grantInspect.js';
import { formatRecord } from './table.js';

export function tokenText({ header, claims }: UnverifiedToken, now: number): string {
  const token = formatRecord([
    ['issuer', text(claims.iss)],
    ['subject', text(claims.sub)],
    ['client', text(claims.client_id)],
    ['audience', text(claims.aud)],
    ['id', text(claims.jti)],
    ['key', [header.kid, header.alg, header.typ].map(text).filter(Boolean).join(', ')],
    ['issued', time(claims.iat)],
    ['expires', expiry(claims.exp, now)],
    ['bound to', text(claims.cnf)],
    ['actor', text(claims.act)],
  ]);
  const details = claims.authorization_details;
  const grants = Array.isArray(details) ? details.map(grantText) : [];
  return [token, ...(grants.length > 0 ? grants : ['no grants: the token allows nothing'])].join(
    '\n\n',
  );
}

function grantText(grant: unknown): string {
  const { id, actions, resource, constraints } = members(grant);
  return formatRecord([
    ['grant', text(id)],
    ['actions', Array.isArray(actions) ? actions.map(text).join(' ') : text(actions)],
    ...Object.entries(members(resource)).map(([key, value]) => [key, text(value)] as const),
    ...Object.entries(members(constraints)).map(([key, value]) => [key, text(value)] as const),
  ]);
}

function members(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function text(value: unknown): string | undefined {
  return value === undefined || typeof value === 'string' ? value : JSON.stringify(value);
}

function time(seconds: unknown): string | undefined {
  if (typeof seconds !== 'number') return text(seconds);
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? String(seconds) : date.toISOString();
}

function expiry(seconds: unknown, now: number): string | undefined {
  if (typeof seconds !== 'number') return text(seconds);
  const left = Math.round(seconds - now / 1000);
  return `${time(seconds)} (${left > 0 ? `in ${left}s` : 'EXPIRED'})`;
}
