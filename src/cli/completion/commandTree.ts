/** The commands as completion sees them: plain data, read from the parser's own tree. */
import type { Argument, Command, Option } from 'commander';

/** What can stand for a value, so that a shell can offer it. */
export type Values =
  | 'none'
  | 'any'
  | 'file'
  | 'directory'
  | 'terminal'
  | 'context'
  | readonly string[];

export interface OptionNode {
  /** Such as `-q` and `--quiet`. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly values: Values;
}

export interface CommandNode {
  /** Names from the root down, the root not among them; an alias is a node of its own. */
  readonly path: readonly string[];
  readonly description: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OptionNode[];
  /** Of the first argument. */
  readonly argument: Values;
}

/** The root first, each command before those below it. */
export function commandNodes(root: Command): readonly CommandNode[] {
  return nodesOf(root, []);
}

function nodesOf(command: Command, path: readonly string[]): CommandNode[] {
  const visible = command.createHelp().visibleCommands(command);
  const named = visible.flatMap((sub) =>
    [sub.name(), ...sub.aliases()].map((name) => ({ name, sub })),
  );
  return [
    {
      path,
      description: command.description(),
      commands: named.map(({ name, sub }) => ({ name, description: sub.description() })),
      options: command.createHelp().visibleOptions(command).map(optionNode),
      argument: argumentValues(command.registeredArguments[0]),
    },
    // The help command takes the names of the others and has nothing below it.
    ...named.flatMap(({ name, sub }) => nodesOf(sub, [...path, name])),
  ];
}

function optionNode(option: Option): OptionNode {
  return {
    flags: [option.short, option.long].filter((flag) => flag !== undefined),
    description: option.description,
    values: option.required || option.optional ? optionValues(option) : 'none',
  };
}

function optionValues({ flags, argChoices, long }: Option): Values {
  if (argChoices) return argChoices;
  if (long === '--context') return 'context';
  if (/<(?:file|cert)>/.test(flags)) return 'file';
  return /<dir>/.test(flags) ? 'directory' : 'any';
}

function argumentValues(argument: Argument | undefined): Values {
  if (argument === undefined) return 'none';
  if (argument.argChoices) return argument.argChoices;
  if (argument.name() === 'id' && argument.description === 'terminal') return 'terminal';
  return argument.description.startsWith('context') ? 'context' : 'any';
}
