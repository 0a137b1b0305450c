/** A part of a grant, as `ctx grant delegate` asks for it: what is left out is as in the whole. */
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Init } from '../client/grpc.js';
import type { Capability } from '../core/capability.js';
import {
  type ConstraintName,
  type Constraints,
  constraintNames,
  parseConstraints,
} from '../core/constraints.js';
import { GranttyError } from '../core/errors.js';
import type { SignalName } from '../core/signals.js';
import type {
  Grant,
  GrantConstraints,
  GrantConstraintsSchema,
  GrantSchema,
} from '../gen/public/grantty/v1/grant_service_pb.js';
import { Signal } from '../gen/public/grantty/v1/terminal_pb.js';
import { UsageError } from './exitCode.js';

export interface PartFlags {
  /** Id of the grant to take a part of; needed where there are several. */
  readonly grant?: string;
  readonly actions?: readonly Capability[];
  /** OWNER/AGENT/SESSION/TERMINAL, each a selector. */
  readonly resource?: string;
  /** As in tokens. */
  readonly constraints: Readonly<Record<string, unknown>>;
}

export function partOfGrant(grants: readonly Grant[], flags: PartFlags): Init<typeof GrantSchema> {
  const whole = wholeOf(grants, flags.grant);
  const { actions, resource } = flags;
  return {
    id: whole.id,
    parentGrantId: whole.id,
    actions: [...(actions ?? whole.actions)],
    resource: resourceOf(whole, resource),
    constraints: { ...unnamed(whole.constraints), ...changed(flags.constraints) },
  };
}

function wholeOf(grants: readonly Grant[], id: string | undefined): Grant {
  const ids = grants.map((grant) => grant.id);
  const found = id === undefined ? grants : grants.filter((grant) => grant.id === id);
  const [whole, ...others] = found;
  if (whole !== undefined && others.length === 0) return whole;
  if (id !== undefined) throw new UsageError(`--grant "${id}": the token has ${ids.join(', ')}`);
  throw new UsageError(
    ids.length === 0 ? 'the token has no grants' : `--grant is needed: one of ${ids.join(', ')}`,
  );
}

function resourceOf({ resource }: Grant, given: string | undefined) {
  if (given === undefined) {
    const { owner = '', agent = '', session = '', terminal = '' } = resource ?? {};
    return { owner, agent, session, terminal };
  }
  const [owner, agent, session, terminal, ...more] = given.split('/');
  if (owner && agent && session && terminal && more.length === 0) {
    return { owner, agent, session, terminal };
  }
  throw new UsageError(
    `--resource "${given}": write OWNER/AGENT/SESSION/TERMINAL, each a name, prefix*, or *`,
  );
}

type ConstraintsInit = Init<typeof GrantConstraintsSchema>;

function unnamed(constraints: GrantConstraints | undefined): ConstraintsInit {
  if (constraints === undefined) return {};
  const { $typeName: _name, $unknown: _unknown, ...fields } = constraints;
  return fields;
}

/** The constraints that were given, as fields of the message. */
function changed(written: Readonly<Record<string, unknown>>): ConstraintsInit {
  let parsed: Constraints;
  try {
    parsed = parseConstraints('--constraint', written);
  } catch (error) {
    throw error instanceof GranttyError ? new UsageError(error.message) : error;
  }
  const given = constraintNames.filter((name) => Object.hasOwn(written, name));
  return Object.assign({}, ...given.map((name) => fieldOf(name, parsed)));
}

function fieldOf(name: ConstraintName, constraints: Constraints): ConstraintsInit {
  const { expiresAt = 0, maxTerminals = 0, commands = [], cwdUnder = [], envAllow } = constraints;
  const { signals = [], signalBytes, writeBytesPerSecond = 0 } = constraints;
  switch (name) {
    case 'expires_at':
      return { expiresAt: timestampFromMs(expiresAt * 1000) };
    case 'max_terminals':
      return { maxTerminals };
    case 'commands':
      return { commands: { commands: commands.map((argv) => ({ argv: [...argv] })) } };
    case 'cwd_under':
      return { cwdUnder: { paths: [...cwdUnder] } };
    case 'env_allow':
      return { envAllow: [...envAllow] };
    case 'signals':
      return { signals: { signals: signals.map(signalOf) } };
    case 'signal_bytes':
      return { signalBytesAllowed: signalBytes === 'allow' };
    case 'write_bytes_per_second':
      return { writeBytesPerSecond: BigInt(writeBytesPerSecond) };
  }
}

/** The contract names signals without SIG. */
export function signalOf(name: SignalName): Signal {
  return Signal[name.slice('SIG'.length) as keyof typeof Signal];
}
