/** `ctx audit tree`: which tokens were delegated from which. */
import { Command } from 'commander';
import type { TreeNode } from '../../audit/lineageTree.js';
import { action } from '../action.js';
import { believableTrail, formatTime, type TrailFlags, withTrailFlags } from '../auditTrail.js';
import { ExitCode } from '../exitCode.js';
import { note, writeLine } from '../output.js';
import { plain } from '../table.js';

export function auditTreeCommand(): Command {
  return withTrailFlags(
    new Command('tree')
      .description('show lines of delegation, from roots to the last descendants')
      .argument('[token]', 'jti: only the line that it is in'),
  ).action(
    action(async (jti: string | undefined, flags: TrailFlags) => {
      const { lineageTree } = await import('../../audit/lineageTree.js');
      const dir = await believableTrail(flags);
      const roots = await lineageTree(dir, jti);
      if (roots.length === 0) note(`no line of delegation in ${dir} answers that`);
      if (flags.json) await writeLine(JSON.stringify(roots));
      else for (const root of roots) await writeTree(root, '');
      return ExitCode.OK;
    }),
  );
}

async function writeTree(node: TreeNode, indent: string): Promise<void> {
  const { jti, sub, actors, grants, exp, revoked_ms: revokedMs } = node;
  const facts = [
    jti,
    sub,
    actors.length > 0 ? `acted by ${actors.join(' < ')}` : undefined,
    grants.length > 0 ? `grants ${grants.join(' ')}` : undefined,
    exp === undefined ? undefined : `until ${formatTime(exp * 1000)}`,
    revokedMs === undefined ? undefined : `revoked ${formatTime(revokedMs)}`,
  ];
  await writeLine(indent + plain(facts.filter((fact) => fact !== undefined).join('  ')));
  for (const child of node.children) await writeTree(child, `${indent}  `);
}
