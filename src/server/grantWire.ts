/** Grants and lineages between the domain and messages of the contract. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { VerifiedToken } from '../auth/token.js';
import { fieldInvalid, GranttyError } from '../core/errors.js';
import { GRANT_TYPE, type Grant, MAX_GRANTS, parseGrants } from '../core/grant.js';
import type * as pb from '../gen/public/grantty/v1/grant_service_pb.js';
import { known } from './fields.js';
import { inSecondsSinceEpoch } from './times.js';
import { signalOf, toSignal } from './wire.js';

export function toGrant(grant: Grant): MessageInitShape<typeof pb.GrantSchema> {
  const { id, actions, resource, from } = grant;
  return {
    id,
    actions: [...actions],
    resource: { ...resource },
    constraints: toConstraints(grant.constraints),
    parentGrantId: from?.at(-1)?.id ?? '',
  };
}

function toConstraints(
  constraints: Grant['constraints'],
): MessageInitShape<typeof pb.GrantConstraintsSchema> {
  const { expiresAt, maxTerminals, commands, cwdUnder, signals } = constraints;
  const { envAllow, signalBytes, writeBytesPerSecond } = constraints;
  return {
    ...(expiresAt !== undefined && { expiresAt: timestampFromMs(expiresAt * 1000) }),
    ...(maxTerminals !== undefined && { maxTerminals }),
    ...(commands && { commands: { commands: commands.map((argv) => ({ argv: [...argv] })) } }),
    ...(cwdUnder && { cwdUnder: { paths: [...cwdUnder] } }),
    envAllow: [...envAllow],
    ...(signals && { signals: { signals: signals.map(toSignal) } }),
    signalBytesAllowed: signalBytes === 'allow',
    ...(writeBytesPerSecond !== undefined && { writeBytesPerSecond: BigInt(writeBytesPerSecond) }),
  };
}

export function toLineage(
  token: VerifiedToken,
  maxDepth: number,
): MessageInitShape<typeof pb.LineageSchema> {
  const { lineage } = token;
  const parent = lineage.at(-1);
  return {
    root: toTokenId(lineage[0] ?? token),
    ...(parent && { parent: toTokenId(parent) }),
    depth: lineage.length,
    maxDepth,
  };
}

export function toTokenId({ issuer, jti }: { readonly issuer: string; readonly jti: string }) {
  return { issuer, jti };
}

/**
 * The grants of a request to delegate, each with the grant that it is to be a part of: read as those
 * of a token are.
 * @throws FIELD_INVALID
 */
export function fromGrants(
  messages: readonly pb.Grant[],
): readonly { readonly grant: Grant; readonly parentId: string }[] {
  if (messages.length === 0 || messages.length > MAX_GRANTS) {
    throw fieldInvalid('grants', `must hold 1 to ${MAX_GRANTS} grants`);
  }
  const written = messages.map((message, index) => writtenGrant(`grants[${index}]`, message));
  return parseGrants(written, 0, 'grants').map((grant, index) => {
    const parentId = messages[index]?.parentGrantId ?? '';
    if (parentId === '') throw fieldInvalid(`grants[${index}].parent_grant_id`, 'is required');
    return { grant, parentId };
  });
}

/** As it would stand in a token. */
function writtenGrant(field: string, { id, actions, resource, constraints }: pb.Grant): object {
  const { owner, agent, session, terminal } = resource ?? {};
  return {
    type: GRANT_TYPE,
    id,
    actions,
    resource: { owner, agent, session, terminal },
    ...(constraints && { constraints: writtenConstraints(`${field}.constraints`, constraints) }),
  };
}

function writtenConstraints(field: string, constraints: pb.GrantConstraints): object {
  const { expiresAt, maxTerminals, commands, cwdUnder, signals } = constraints;
  const { envAllow, signalBytesAllowed, writeBytesPerSecond } = constraints;
  return {
    ...(expiresAt && { expires_at: inSecondsSinceEpoch(`${field}.expires_at`, expiresAt) }),
    ...(maxTerminals !== undefined && { max_terminals: maxTerminals }),
    ...(commands && { commands: commands.commands.map(({ argv }) => argv) }),
    ...(cwdUnder && { cwd_under: cwdUnder.paths }),
    env_allow: envAllow,
    ...(signals && {
      signals: signals.signals.map((signal, index) =>
        known(`${field}.signals.signals[${index}]`, signalOf(signal)),
      ),
    }),
    signal_bytes: signalBytesAllowed ? 'allow' : 'refuse',
    ...(writeBytesPerSecond !== undefined && {
      write_bytes_per_second: Number(writeBytesPerSecond),
    }),
  };
}

/** For a server that has no issuer of its own. */
export function cannotDelegate(): GranttyError {
  return new GranttyError('KEYS_UNAVAILABLE', 'this server has no key to sign tokens with');
}
