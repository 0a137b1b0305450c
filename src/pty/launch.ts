/** What is executed first in a forked child, and how it comes to be nothing but the command. */
import { join } from 'node:path';
import { isEnvName } from '../core/envNames.js';
import { fieldInvalid } from '../core/errors.js';
import { changeUser, type RunAs } from './runAs.js';

export interface Launch {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Variables of the launch itself begin with it; a request has none that does. */
const OWN_PREFIX = 'GRANTTY_LAUNCH_';

/**
 * Nothing is done because of these, so they pass as they are: the mark by which the process is found
 * from the first moment, and those that a shell lets nobody set.
 */
const PASSED = new Set(['CTX_INSTANCE', 'UID', 'EUID', 'GROUPS']);

/** A shell has these for itself: they would not get through. */
const REFUSED = new Set(['OPTIND', 'PPID']);

/**
 * What comes before the rest so that the command has descriptors 0, 1 and 2 only. node-pty's prebuilt
 * library was compiled without close_range(2): it marks descriptors one by one and stops at the
 * first number that is free, so that masters above it would reach the child, which could read and
 * type into terminals of others. forkPty leaves no number free, but an I/O thread may close one at
 * that moment; this makes it certain. A small sh closes numbers of one digit only, bash all of them,
 * and `rest` is then executed anew; where there is no bash, a command that would inherit
 * something is not run.
 */
function closeInherited(rest: string): string {
  return `[ -h /proc/self/fd/0 ] || exit 126
${OWN_PREFIX}OPEN=
for ${OWN_PREFIX}FD in /proc/self/fd/*; do
  ${OWN_PREFIX}FD="\${${OWN_PREFIX}FD##*/}"
  [ "$${OWN_PREFIX}FD" -le 2 ] || [ ! -h "/proc/self/fd/$${OWN_PREFIX}FD" ] ||
    ${OWN_PREFIX}OPEN="$${OWN_PREFIX}OPEN $${OWN_PREFIX}FD>&-"
done
[ -z "$${OWN_PREFIX}OPEN" ] ||
  exec /bin/bash --norc --noprofile -p -c "exec$${OWN_PREFIX}OPEN; exec \\"\\$@\\"" bash \
    ${shell(`'${rest}'`).join(' ')} "$@"
${rest}`;
}

/** Puts the process into a control group before anything of the command can fork. Without it, nothing runs. */
const JOIN_GROUP = 'echo $$ >"$1" || exit 126; shift; exec "$@"';

/**
 * `launch` with what comes before it in the same process, so that the pid stays: the change of user,
 * then the closing of descriptors, then its environment. Until then the variables have other names
 * and act on nothing: not on the change of user, which starts as root, and not on what sees
 * descriptors of others. Their values are in no argv, which everybody may read.
 * @param cgroup directory of the control group to be in; joined as the user of this process
 * @throws FIELD_INVALID for a variable that cannot be set
 */
export function childLaunch(
  { argv, env }: Launch,
  runAs: RunAs | undefined,
  cgroup?: string,
): Launch {
  if (!argv[0]?.startsWith('/')) throw new Error('the command to launch must be absolute');
  const carried: string[] = [];
  const carriers: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (!isEnvName(name)) throw fieldInvalid('env', 'a name is letters, digits and underscore');
    if (REFUSED.has(name) || name.startsWith(OWN_PREFIX)) {
      throw fieldInvalid(`env.${name}`, 'cannot be set');
    }
    if (PASSED.has(name)) carriers[name] = value;
    else carriers[`${OWN_PREFIX}${carried.push(name) - 1}`] = value;
  }
  return {
    argv: [
      ...(cgroup === undefined ? [] : [...shell(JOIN_GROUP), join(cgroup, 'cgroup.procs')]),
      ...(runAs ? changeUser(runAs) : []),
      ...shell(closeInherited(giveNames(carried))),
      ...argv,
    ],
    env: carriers,
  };
}

/**
 * Executes its arguments when the nth carrier has become the variable of the nth name. Holds no
 * single quote, so that it can stand between two.
 */
function giveNames(names: readonly string[]): string {
  // A shell sets these for what it executes.
  const own = ['PWD', 'OLDPWD', 'SHLVL'].filter((name) => !names.includes(name));
  // Where sh is bash it warns of a locale that is not installed; the command says so if it cares.
  const quiet = (name: string) => (/^L(?:C_|ANG)/.test(name) ? ' 2>/dev/null' : '');
  const exports = names.map(
    (name, index) => `export ${name}="$${OWN_PREFIX}${index}"${quiet(name)}`,
  );
  const carriers = names.map((_, index) => `${OWN_PREFIX}${index}`);
  return [
    ...exports,
    `unset ${OWN_PREFIX}OPEN ${OWN_PREFIX}FD ${[...own, ...carriers].join(' ')}`,
    'exec "$@"',
  ].join('\n');
}

function shell(script: string): string[] {
  return ['/bin/sh', '-c', script, 'sh'];
}
