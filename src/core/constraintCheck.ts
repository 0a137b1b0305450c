/** Whether constraints allow a request: each judges the part of it that it is about. */
import type { AccessRequest, Launch } from './access.js';
import type { ConstraintName, Constraints } from './constraints.js';
import { isUnder } from './directory.js';
import { maySetEnv } from './envNames.js';
import type { SignalName } from './signals.js';

/**
 * The first constraint that refuses the request. `max_terminals` and `write_bytes_per_second` are
 * never among them: they depend on what else the holder does, and are charged to budgets.
 */
export function violatedConstraint(
  constraints: Constraints,
  request: AccessRequest,
  nowSeconds: number,
): ConstraintName | undefined {
  const { action, launch, signal, anySignal, signalBytes } = request;
  if (isOver(constraints, nowSeconds)) return 'expires_at';
  if (launch !== undefined) {
    const violated = violatedByLaunch(constraints, launch);
    if (violated !== undefined) return violated;
  }
  const names = action === 'terminal.signal' && !anySignal;
  if (names && !allowsSignal(constraints, signal)) return 'signals';
  if (signalBytes?.length && constraints.signalBytes === 'refuse') return 'signal_bytes';
  return undefined;
}

export function isOver({ expiresAt }: Constraints, nowSeconds: number): boolean {
  return expiresAt !== undefined && nowSeconds >= expiresAt;
}

function violatedByLaunch(constraints: Constraints, launch: Launch): ConstraintName | undefined {
  const { commands, cwdUnder, envAllow } = constraints;
  if (commands && !commands.some((argv) => isSameArgv(argv, launch.command))) return 'commands';
  if (cwdUnder && !isUnder(launch.cwd, cwdUnder)) return 'cwd_under';
  if (!launch.envNames.every((name) => maySetEnv(name, envAllow))) return 'env_allow';
  return undefined;
}

export function isSameArgv(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((argument, index) => argument === b[index]);
}

/** A grant that limits signals allows no request that does not say which. */
function allowsSignal({ signals }: Constraints, signal: SignalName | undefined): boolean {
  return signals === undefined || (signal !== undefined && signals.includes(signal));
}
