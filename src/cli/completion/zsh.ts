/** Completion for zsh (zshcompsys(1)). */
import type { CommandNode, Values } from './commandTree.js';
import { placeOf, shellQuote } from './words.js';

export function zshCompletion(nodes: readonly CommandNode[]): string {
  return `#compdef ctx
# zsh completion of ctx: source <(ctx completion zsh), after compinit
_ctx() {
  local at= word
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    # What follows belongs to the command that is run.
    if [[ $word == -- ]]; then _default; return; fi
    case "$at $word" in
${nodes
  .slice(1)
  .map(({ path }) => `      (${shellQuote(placeOf(path))}) at=${shellQuote(placeOf(path))} ;;`)
  .join('\n')}
    esac
  done
  case "$at:$words[CURRENT-1]" in
${nodes.flatMap(optionArms).join('\n')}
  esac
  case "$at" in
${nodes.map(commandArm).join('\n')}
  esac
  if [[ $PREFIX == -* ]]; then
    _describe -o option options
  elif (( $#commands )); then
    _describe command commands
  fi
}
if [[ $funcstack[1] == _ctx ]]; then _ctx "$@"; else compdef _ctx ctx; fi
`;
}

function optionArms({ path, options }: CommandNode): string[] {
  return options
    .filter(({ values }) => values !== 'none')
    .map(({ flags, values }) => {
      const patterns = flags.map((flag) => shellQuote(`${placeOf(path)}:${flag}`));
      return `    (${patterns.join('|')}) ${offer(values)}; return ;;`;
    });
}

function commandArm({ path, commands, options, argument }: CommandNode): string {
  const described = commands.map(({ name, description }) => entry(name, description));
  const flagged = options.flatMap(({ flags, description }) =>
    flags.map((flag) => entry(flag, description)),
  );
  const other = argument === 'none' || argument === 'any' ? '' : offer(argument);
  return [
    `    (${shellQuote(placeOf(path))})`,
    `      commands=(${described.join(' ')})`,
    `      options=(${flagged.join(' ')})`,
    ...(other === '' ? [] : [`      if [[ $PREFIX != -* ]]; then ${other}; fi`]),
    '      ;;',
  ].join('\n');
}

function entry(name: string, description: string): string {
  return shellQuote(`${name.replaceAll(':', '\\:')}:${description}`);
}

function offer(values: Values): string {
  switch (values) {
    case 'none':
    case 'any':
      return ':';
    case 'file':
      return '_files';
    case 'directory':
      return '_files -/';
    case 'terminal':
      return `compadd -- \${(f)"$(ctx terminal list --quiet 2>/dev/null)"}`;
    case 'context':
      return `compadd -- \${(f)"$(ctx context list --quiet 2>/dev/null)"}`;
    default:
      return `compadd -- ${values.map(shellQuote).join(' ')}`;
  }
}
