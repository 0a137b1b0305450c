/** Completion for bash (programmable completion, bash(1)). */
import type { CommandNode, Values } from './commandTree.js';
import { placeOf, shellQuote } from './words.js';

export function bashCompletion(nodes: readonly CommandNode[]): string {
  return `# bash completion of ctx: source <(ctx completion bash)
_ctx() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at= word
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    # What follows belongs to the command that is run.
    [[ $word == -- ]] && return
    case "$at $word" in
${nodes
  .slice(1)
  .map(({ path }) => `      ${shellQuote(placeOf(path))}) at=${shellQuote(placeOf(path))} ;;`)
  .join('\n')}
    esac
  done
  case "$at:$prev" in
${nodes.flatMap(optionArms).join('\n')}
  esac
  case "$at" in
${nodes.map(commandArm).join('\n')}
  esac
}
complete -o default -F _ctx ctx
`;
}

function optionArms({ path, options }: CommandNode): string[] {
  return options
    .filter(({ values }) => values !== 'none')
    .map(({ flags, values }) => {
      const patterns = flags.map((flag) => shellQuote(`${placeOf(path)}:${flag}`));
      return `    ${patterns.join('|')}) ${reply(values)}; return ;;`;
    });
}

function commandArm({ path, commands, options, argument }: CommandNode): string {
  const words = [...commands.map(({ name }) => name), ...options.flatMap(({ flags }) => flags)];
  const known = reply(words);
  // Options only where one is begun: what else stands there is an argument.
  const arm =
    argument === 'none' || argument === 'any'
      ? known
      : `if [[ $cur == -* ]]; then ${known}; else ${reply(argument)}; fi`;
  return `    ${shellQuote(placeOf(path))}) ${arm} ;;`;
}

function reply(values: Values): string {
  switch (values) {
    case 'none':
    case 'any':
      return ':';
    case 'file':
      return 'COMPREPLY=($(compgen -f -- "$cur"))';
    case 'directory':
      return 'COMPREPLY=($(compgen -d -- "$cur"))';
    case 'terminal':
      return 'COMPREPLY=($(compgen -W "$(ctx terminal list --quiet 2>/dev/null)" -- "$cur"))';
    case 'context':
      return 'COMPREPLY=($(compgen -W "$(ctx context list --quiet 2>/dev/null)" -- "$cur"))';
    default:
      return `COMPREPLY=($(compgen -W ${shellQuote(values.join(' '))} -- "$cur"))`;
  }
}
