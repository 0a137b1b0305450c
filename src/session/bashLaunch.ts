/** How bash is started so that it marks its prompts. */
import { isDeepStrictEqual } from 'node:util';
import { SHELL_SETUP_VARIABLE, shellBootstrap } from '../core/shellBootstrap.js';
import { promptMark } from './promptMarks.js';

export interface ShellLaunch {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** What bash is called where its path is not given: found on the child's PATH. */
const BASH = 'bash';

/** bash reads the person's own start-up file first; the marks are renewed at each prompt. */
export function bashLaunch(secret: string, bash = BASH): ShellLaunch {
  const begins = quoted(promptMark('C', secret));
  const ready = `\\[${quoted(promptMark('B', secret))}\\]`;
  const setup = [
    'exec 3<&-',
    'if [ -f ~/.bashrc ]; then . ~/.bashrc; fi',
    // The last command to run before a prompt: others may have set PS1 anew.
    `__grantty_prompt() { local s=$?; case $PS1 in *'${ready}') ;; *) PS1=$PS1'${ready}' ;; esac; return $s; }`,
    `PS0='${begins}'$PS0`,
    // Up to bash 5.0 it is one string.
    'if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501)); then',
    '  PROMPT_COMMAND+=(__grantty_prompt)',
    'else',
    `  PROMPT_COMMAND+=$'\\n'__grantty_prompt`,
    'fi',
  ].join('\n');
  return { command: shellBootstrap(bash), env: { [SHELL_SETUP_VARIABLE]: `${setup}\n` } };
}

/** The secret that `bashLaunch` put into this environment; undefined where it made none. */
export function launchSecret(env: Readonly<Record<string, string>>): string | undefined {
  return /grantty=([0-9a-f]+)/.exec(env[SHELL_SETUP_VARIABLE] ?? '')?.[1];
}

/**
 * What was asked for where `bashLaunch` made this of it: bash, in the caller's environment. Only its very
 * set-up counts as that; what somebody else put into the variable stays in what is judged.
 */
export function launchAsAsked({ command, env }: ShellLaunch): ShellLaunch {
  const secret = launchSecret(env);
  const [bash] = command;
  if (secret === undefined || bash === undefined) return { command, env };
  const ours = bashLaunch(secret, bash);
  const isOurs =
    isDeepStrictEqual(command, ours.command) &&
    env[SHELL_SETUP_VARIABLE] === ours.env[SHELL_SETUP_VARIABLE];
  if (!isOurs) return { command, env };
  const { [SHELL_SETUP_VARIABLE]: _setup, ...asked } = env;
  return { command: [bash], env: asked };
}

/** As prompt strings write control characters. */
function quoted(mark: string): string {
  return mark.replaceAll('\x1b', '\\e').replaceAll('\x07', '\\a');
}
