/** Completion for fish (complete(1) of fish). */
import type { CommandNode, OptionNode, Values } from './commandTree.js';
import { placeOf } from './words.js';

export function fishCompletion(nodes: readonly CommandNode[]): string {
  const places = nodes.slice(1).map(({ path }) => quote(placeOf(path)));
  return `# fish completion of ctx: ctx completion fish | source
function __ctx_at
    set -l at ''
    for word in (commandline -opc)[2..-1]
        # What follows belongs to the command that is run.
        test "$word" = --; and return 1
        contains -- "$at $word" ${places.join(' ')}; and set at "$at $word"
    end
    test "$at" = "$argv[1]"
end
complete -c ctx -e
complete -c ctx -f
complete -c ctx -n 'contains -- -- (commandline -opc)' -F
${nodes.flatMap(lines).join('\n')}
`;
}

function lines({ path, commands, options, argument }: CommandNode): string[] {
  const here = `complete -c ctx -n ${quote(`__ctx_at ${quote(placeOf(path))}`)}`;
  const words = offer(argument);
  return [
    ...commands.map(
      ({ name, description }) => `${here} -a ${quote(name)} -d ${quote(description)}`,
    ),
    ...options.map((option) => `${here} ${flagsOf(option)} -d ${quote(option.description)}`),
    ...(words === '' ? [] : [`${here} ${words}`]),
  ];
}

function flagsOf({ flags, values }: OptionNode): string {
  const names = flags.map((flag) =>
    flag.startsWith('--') ? `-l ${quote(flag.slice(2))}` : `-s ${quote(flag.slice(1))}`,
  );
  if (values === 'none') return names.join(' ');
  // -x: no file is offered beside.
  return `${names.join(' ')} ${values === 'file' ? '-r' : '-x'} ${offer(values)}`.trimEnd();
}

function offer(values: Values): string {
  switch (values) {
    case 'none':
    case 'any':
      return '';
    case 'file':
      return '-F';
    case 'directory':
      return "-a '(__fish_complete_directories)'";
    case 'terminal':
      return "-a '(ctx terminal list --quiet 2>/dev/null)'";
    case 'context':
      return "-a '(ctx context list --quiet 2>/dev/null)'";
    default:
      return `-a ${quote(values.join(' '))}`;
  }
}

/** In single quotes fish knows two escapes. */
function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
