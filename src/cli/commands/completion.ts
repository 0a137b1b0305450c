/** `ctx completion`: a script that completes this program's command lines in a shell. */
import { Argument, Command } from 'commander';
import { action } from '../action.js';
import type { CommandNode } from '../completion/commandTree.js';
import { writeBytes } from '../output.js';

const SHELLS = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof SHELLS)[number];

/** `root` is asked for when the command runs: it is the tree that this command is part of. */
export function completionCommand(root: () => Command): Command {
  return new Command('completion')
    .description(
      'print the completion of a shell: source <(ctx completion bash), or "| source" in fish',
    )
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .action(
      action(async (shell: Shell) => {
        const { commandNodes } = await import('../completion/commandTree.js');
        const nodes = commandNodes(root());
        await writeBytes(await scriptOf(shell, nodes));
      }),
    );
}

async function scriptOf(shell: Shell, nodes: readonly CommandNode[]): Promise<string> {
  switch (shell) {
    case 'bash':
      return (await import('../completion/bash.js')).bashCompletion(nodes);
    case 'zsh':
      return (await import('../completion/zsh.js')).zshCompletion(nodes);
    case 'fish':
      return (await import('../completion/fish.js')).fishCompletion(nodes);
  }
}
