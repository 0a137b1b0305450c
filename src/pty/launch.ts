/** What is executed first in a forked child, and how it comes to be nothing but the command. */
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
 * Variables that would act on what runs before the command: on the C library of the program that
 * changes the uid as root (those that glibc keeps from set-uid programs, sysdeps/generic/
 * unsecvars.h; musl's are among them), and on the shell (POSIX.1-2017, XCU 2.5.3; bash(1)).
 */
const EARLY_VARIABLE = new RegExp(
  `^(?:${[
    'LD_.*|MALLOC_.*|GLIBC_.*|GCONV_PATH|GETCONF_DIR|HOSTALIASES|LOCALDOMAIN|LOCPATH|NIS_PATH',
    'NLSPATH|RESOLV_.*|RES_OPTIONS|TMPDIR|TZDIR',
    'ENV|BASH_ENV|SHELLOPTS|BASHOPTS|POSIXLY_CORRECT|IFS|PS4|CDPATH|GLOBIGNORE|PWD|OLDPWD|SHLVL',
  ].join('|')})$`,
);

/** A shell sets these for what it executes. */
const FORGET = 'unset PWD OLDPWD SHLVL';

/**
 * Executes its arguments with descriptors 0, 1 and 2 only. node-pty's prebuilt library was compiled
 * without close_range(2): it marks descriptors one by one and stops at the first number that is
 * free, so that masters above it would reach the child, which could read and type into terminals of
 * others. forkPty leaves no number free, but an I/O thread may close one at that moment; this makes
 * it certain. A small sh closes numbers of one digit only; bash closes all; without bash what should
 * have been closed is not run.
 */
const fd = `${OWN_PREFIX}FD`;
const left = `${OWN_PREFIX}LEFT`;
const CLOSE_INHERITED = [
  '[ -h /proc/self/fd/0 ] || exit 126',
  `${left}=`,
  `for ${fd} in /proc/self/fd/*; do`,
  `  ${fd}="\${${fd}##*/}"`,
  `  [ "$${fd}" -le 2 ] || [ ! -h "/proc/self/fd/$${fd}" ] || ${left}="$${left} $${fd}>&-"`,
  'done',
  `set -- "$${left}" "$@"`,
  `unset ${fd} ${left}`,
  FORGET,
  `[ -z "$1" ] || exec /bin/bash --norc --noprofile -p -c "exec$1; shift; ${FORGET}; exec \\"\\$@\\"" bash "$@"`,
  'shift',
  'exec "$@"',
].join('\n');

/**
 * `launch` with what must come before it in the same process, so that the pid stays: the change of
 * user, then the closing of descriptors, then the variables that must not act on those two.
 * @throws FIELD_INVALID for a variable whose name is reserved
 */
export function childLaunch({ argv, env }: Launch, runAs: RunAs | undefined): Launch {
  for (const name of Object.keys(env)) {
    if (!isEnvName(name)) throw fieldInvalid('env', 'a name is letters, digits and underscore');
    if (name.startsWith(OWN_PREFIX)) throw fieldInvalid(`env.${name}`, 'the name is reserved');
  }
  const early = Object.keys(env).filter((name) => EARLY_VARIABLE.test(name));
  const carried = early.map((name, index) => ({ name, carrier: `${OWN_PREFIX}${index}` }));
  const prefix = [
    ...(runAs ? changeUser(runAs) : []),
    ...shell(CLOSE_INHERITED),
    ...(carried.length > 0 ? shell(restore(carried)) : []),
  ];
  return {
    argv: [...prefix, ...argv],
    env: Object.fromEntries([
      ...Object.entries(env).filter(([name]) => !EARLY_VARIABLE.test(name)),
      ...carried.map(({ name, carrier }) => [carrier, env[name] ?? '']),
    ]),
  };
}

/** Values pass through the environment only: an argv can be read by everybody. */
function restore(carried: readonly { readonly name: string; readonly carrier: string }[]): string {
  return [
    FORGET,
    `export ${carried.map(({ name, carrier }) => `${name}="$${carrier}"`).join(' ')}`,
    `unset ${carried.map(({ carrier }) => carrier).join(' ')}`,
    'exec "$@"',
  ].join('\n');
}

function shell(script: string): string[] {
  return ['/bin/sh', '-c', script, 'sh'];
}
