/** The tree of commands. Here only what parsing needs is loaded; a command loads the rest itself. */
import { Command } from 'commander';
import { attachCommand } from './commands/attach.js';
import { auditDidCommand } from './commands/auditDid.js';
import { auditTreeCommand } from './commands/auditTree.js';
import { auditUnusedCommand } from './commands/auditUnused.js';
import { auditVerifyCommand } from './commands/auditVerify.js';
import { auditWhoCouldCommand } from './commands/auditWhoCould.js';
import { auditWhyCommand } from './commands/auditWhy.js';
import { closeCommand } from './commands/close.js';
import { completionCommand } from './commands/completion.js';
import { contextListCommand } from './commands/contextList.js';
import { contextSetCommand } from './commands/contextSet.js';
import { contextShowCommand } from './commands/contextShow.js';
import { contextUseCommand } from './commands/contextUse.js';
import { createCommand } from './commands/create.js';
import { doctorCommand } from './commands/doctor.js';
import { exportCommand } from './commands/export.js';
import { findCommand } from './commands/find.js';
import { grantCheckCommand } from './commands/grantCheck.js';
import { grantDelegateCommand } from './commands/grantDelegate.js';
import { grantInspectCommand } from './commands/grantInspect.js';
import { grantMintCommand } from './commands/grantMint.js';
import { grantRevokeCommand } from './commands/grantRevoke.js';
import { killCommand } from './commands/kill.js';
import { listCommand } from './commands/list.js';
import { policyCheckCommand } from './commands/policyCheck.js';
import { policyExplainCommand } from './commands/policyExplain.js';
import { policyTestCommand } from './commands/policyTest.js';
import { readCommand } from './commands/read.js';
import { resizeCommand } from './commands/resize.js';
import { rmCommand } from './commands/rm.js';
import { runCommand } from './commands/run.js';
import { screenCommand } from './commands/screen.js';
import { sendCommand } from './commands/send.js';
import { serveCommand } from './commands/serve.js';
import { signalCommand } from './commands/signal.js';
import { spawnCommand } from './commands/spawn.js';
import { startCommand } from './commands/start.js';
import { statusCommand } from './commands/status.js';
import { stopCommand } from './commands/stop.js';
import { superviseCommand } from './commands/supervise.js';
import { updateCommand } from './commands/update.js';
import { versionCommand } from './commands/version.js';
import { waitCommand } from './commands/wait.js';
import { watchCommand } from './commands/watch.js';
import { writeCommand } from './commands/write.js';
import { readVersion } from './version.js';

export function program(): Command {
  const ctx: Command = new Command('ctx')
    .description('Durable terminals behind signed grants.')
    .version(readVersion(), '-V, --version')
    .addCommand(
      group('terminal', 'create, watch, attach to and end terminals', [
        createCommand(),
        runCommand(),
        listCommand(),
        statusCommand(),
        watchCommand(),
        attachCommand(),
        writeCommand(),
        resizeCommand(),
        signalCommand(),
        updateCommand(),
        stopCommand(),
        killCommand(),
        waitCommand(),
        spawnCommand(),
        sendCommand(),
        closeCommand(),
        readCommand(),
        screenCommand(),
        findCommand(),
        exportCommand(),
        startCommand(),
        rmCommand(),
      ]),
    )
    .addCommand(
      group('grant', 'make, narrow, revoke and look at tokens', [
        grantMintCommand(),
        grantInspectCommand(),
        grantDelegateCommand(),
        grantRevokeCommand(),
        grantCheckCommand(),
      ]),
    )
    .addCommand(
      group('policy', 'check, test and ask the policies that decide after the grants', [
        policyCheckCommand(),
        policyTestCommand(),
        policyExplainCommand(),
      ]),
    )
    .addCommand(
      group('audit', 'verify the trail of decisions and ask it, without a server', [
        auditVerifyCommand(),
        auditWhoCouldCommand(),
        auditDidCommand(),
        auditWhyCommand(),
        auditTreeCommand(),
        auditUnusedCommand(),
      ]),
    )
    .addCommand(
      group('context', 'named connection settings in ~/.config/grantty/config.yaml', [
        contextListCommand(),
        contextShowCommand(),
        contextUseCommand(),
        contextSetCommand(),
      ]),
    )
    .addCommand(serveCommand())
    .addCommand(superviseCommand())
    .addCommand(doctorCommand())
    .addCommand(completionCommand(() => ctx))
    .addCommand(versionCommand());
  throwInsteadOfExit(ctx);
  return ctx;
}

function group(name: string, description: string, commands: readonly Command[]): Command {
  const command = new Command(name).description(description);
  for (const sub of commands) command.addCommand(sub);
  return command;
}

/** So that usage errors get the exit code of main.ts. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride().showHelpAfterError('(see --help)');
  for (const sub of command.commands) throwInsteadOfExit(sub);
}
