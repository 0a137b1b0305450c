/** CheckAccess: whether an action would be allowed, and why, by the decision that serves it. */
import { capabilities, isCapability } from '../core/capability.js';
import { fieldInvalid } from '../core/errors.js';
import type { Grant, Uncovered } from '../core/grant.js';
import type { Name, TerminalTuple } from '../core/names.js';
import { outOfReach } from '../core/resource.js';
import { selectsOwner } from '../core/selector.js';
import type { SignalName } from '../core/signals.js';
import type {
  CheckAccessRequest,
  GrantService,
} from '../gen/public/grantty/v1/grant_service_pb.js';
import { type Assessment, admit, assess } from './authorize.js';
import type { ServerContext } from './context.js';
import { DEFAULT_SESSION, storedLaunch, withDefaults } from './createTerminal.js';
import { known } from './fields.js';
import type { Ask } from './gate.js';
import type { Handlers } from './grpc.js';
import { callerOf } from './perform.js';
import { storedTarget } from './refs.js';
import { signalOf, toReason } from './wire.js';

type CheckHandler = NonNullable<Handlers<typeof GrantService>['checkAccess']>;

export function checkAccess(context: ServerContext): CheckHandler {
  const { gate } = context;
  return async (request, call) => {
    const caller = callerOf(call);
    await admit(gate, caller);
    const assessment = await assess(gate, caller, askOf(context, request));
    const { grant, refusal, policy, decisionId } = assessment;
    const considered = consideredOf(assessment);
    return {
      allowed: refusal === undefined,
      ...(refusal && { reason: toReason(refusal.reason) }),
      grantId: (refusal ? undefined : grant?.id) ?? '',
      constraint: closestConstraint(assessment),
      considered: [
        ...considered,
        ...(grant ? [{ grantId: grant.id, covers: true, failed: '' }] : []),
      ],
      policyIds: [...(policy?.policyIds ?? [])].sort(),
      policyHash: gate.policy.hash,
      decisionId,
    };
  };
}

/** The signals that 0x03, 0x1c and 0x1a stand for. */
const BYTE_SIGNALS: readonly SignalName[] = ['SIGINT', 'SIGQUIT', 'SIGTSTP'];

/** @throws FIELD_INVALID */
function askOf({ supervisor }: ServerContext, request: CheckAccessRequest): Ask {
  const { action, terminal, create, signal, signalBytes } = request;
  if (!isCapability(action))
    throw fieldInvalid('action', `must be one of ${capabilities.join(', ')}`);
  if (create !== undefined && action !== 'terminal.create') {
    throw fieldInvalid('create', 'goes with terminal.create only');
  }
  if (signal !== undefined && action !== 'terminal.signal') {
    throw fieldInvalid('signal', 'goes with terminal.signal only');
  }
  if (signalBytes && action !== 'terminal.write') {
    throw fieldInvalid('signal_bytes', 'goes with terminal.write only');
  }
  if (create !== undefined) {
    const { agent, session = DEFAULT_SESSION, command, cwd, envNames } = create;
    const { owner, id } = storedTarget(terminal);
    return {
      action,
      target: { kind: 'new', owner, agent, session, id },
      launch: (target) => withDefaults(supervisor, target.owner, { command, cwd, envNames }),
    };
  }
  return {
    action,
    target: storedTarget(terminal),
    ...(action === 'terminal.create' && {
      launch: (target: { owner: Name; id: Name }) => storedLaunch(supervisor, target),
    }),
    ...(action === 'terminal.signal' &&
      (signal === undefined
        ? { anySignal: true as const }
        : { signal: known('signal', signalOf(signal)) })),
    ...(signalBytes && { signalBytes: BYTE_SIGNALS }),
  };
}

/**
 * What each grant failed by. Nothing of a terminal that no grant reaches: the answer must be that for
 * one that does not exist.
 */
function consideredOf({ token, target, considered }: Assessment) {
  const tuple = tupleOf(target);
  if (tuple === undefined) return [];
  if (!token.grants.some(({ resource }) => outOfReach(resource, tuple) === undefined)) return [];
  return considered.map(({ grantId, why }) => {
    const grant = token.grants.find(({ id }) => id === grantId);
    return { grantId, covers: false, failed: grant ? failedPart(grant, why, tuple) : why };
  });
}

function failedPart({ resource, ceiling }: Grant, why: Uncovered, tuple: TerminalTuple): string {
  if (why === 'resource') return `resource.${outOfReach(resource, tuple)}`;
  if (why !== 'ceiling') return why;
  const hasOwner = ceiling?.owners.some((selector) => selectsOwner(selector, tuple.owner));
  return hasOwner ? 'action' : 'resource.owner';
}

/** Of the grant that came closest: the first that only a constraint kept from covering. */
function closestConstraint(assessment: Assessment): string {
  const { refusal } = assessment;
  if (refusal?.reason !== 'GRANT_MISSING') return '';
  const isConstraint = ({ failed }: { failed: string }) =>
    failed !== 'action' && !failed.startsWith('resource.');
  return consideredOf(assessment).find(isConstraint)?.failed ?? '';
}

function tupleOf(target: Assessment['target']): TerminalTuple | undefined {
  if (target?.agent === undefined || target.session === undefined) return undefined;
  return target as TerminalTuple;
}
