/** The command by which the bash of a session starts, and how to tell it from others. */

/** Carries the set-up to the first bash, which takes it out of the environment. */
export const SHELL_SETUP_VARIABLE = 'GRANTTY_SHELL_SETUP';

/**
 * The first bash hands the set-up to the second over descriptor 3 and becomes it: the secret stands
 * in no file, no argument, and in the environment of no later process, /proc/PID/environ included.
 */
const BOOTSTRAP = `s=$${SHELL_SETUP_VARIABLE}; unset ${SHELL_SETUP_VARIABLE}; exec "$BASH" --rcfile /dev/fd/3 -i 3<<<"$s"`;

export function shellBootstrap(bash: string): readonly string[] {
  return [bash, '-c', BOOTSTRAP];
}

/**
 * A command as people should see it: of a session its shell alone. Nothing else is shortened, so that
 * no command can hide behind a likeness.
 */
export function shownCommand(command: readonly string[]): readonly string[] {
  const [shell = '', ...rest] = command;
  const [, ...bootstrap] = shellBootstrap(shell);
  const isBootstrap =
    rest.length === bootstrap.length && rest.every((word, at) => word === bootstrap[at]);
  return isBootstrap ? [shell] : command;
}
