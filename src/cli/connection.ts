/** From a command's flags to an open client. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { type Command, Option } from 'commander';
import type { Client } from '../client/connect.js';
import { contextFilePath, readContextFile, selectContext } from './contextFile.js';
import { UsageError } from './exitCode.js';
import {
  environmentLayer,
  resolveSettings,
  resolveToken,
  type Settings,
  type SettingsLayer,
  type TokenSource,
} from './settings.js';

export interface ConnectionFlags extends SettingsLayer {
  readonly context?: string;
}

/** The flags that say where the token is. */
export function withTokenFlags(command: Command): Command {
  const group = 'Connection:';
  return command
    .addOption(
      new Option(
        '--token <token>',
        'bearer token; others can see it in the process list',
      ).helpGroup(group),
    )
    .addOption(
      new Option(
        '--token-file <file>',
        'file with the token, read again before it expires',
      ).helpGroup(group),
    )
    .addOption(
      new Option('--token-command <command>', 'shell command that prints the token').helpGroup(
        group,
      ),
    )
    .addOption(
      new Option('--context <name>', 'context of ~/.config/grantty/config.yaml').helpGroup(group),
    );
}

/** The flags of every command that talks to a server. */
export function withConnectionFlags(command: Command): Command {
  const group = 'Connection:';
  return withTokenFlags(command)
    .addOption(new Option('--address <host:port>', 'server to talk to').helpGroup(group))
    .addOption(
      new Option('--ca <file>', "PEM of the authority of the server's certificate").helpGroup(
        group,
      ),
    )
    .addOption(new Option('--cert <file>', 'PEM of a client certificate').helpGroup(group))
    .addOption(new Option('--key <file>', 'PEM of its key').helpGroup(group))
    .addOption(
      new Option('--server-name <name>', "name in the server's certificate").helpGroup(group),
    )
    .addOption(new Option('--owner <owner>', 'owner of the terminal').helpGroup(group));
}

/** An open client, and the owner that the settings name. To be disposed by the command. */
export interface Connection extends Disposable {
  readonly client: Client;
  /** A terminal's name as requests carry it: with the owner, where the settings name one. */
  ref(id: string): { id: string; owner?: string };
  readonly owner: string | undefined;
}

/** What the flags, the environment and the context come to. @throws UsageError */
export async function settingsOf(flags: ConnectionFlags): Promise<Settings> {
  return resolveSettings(await settingsLayers(flags));
}

export async function openConnection(flags: ConnectionFlags): Promise<Connection> {
  const settings = await settingsOf(flags);
  const [{ connect }, { rememberedToken }, ca, cert, key] = await Promise.all([
    import('../client/connect.js'),
    import('../client/token.js'),
    readPem('ca', settings.ca),
    readPem('cert', settings.cert),
    readPem('key', settings.key),
  ]);
  const client = connect({
    address: settings.address,
    token: rememberedToken(() => readToken(settings.token)),
    ...(ca && { ca }),
    ...(cert && { cert }),
    ...(key && { key }),
    ...(settings.serverName && { serverName: settings.serverName }),
  });
  const { owner } = settings;
  return {
    client,
    owner,
    ref: (id) => (owner === undefined ? { id } : { id, owner }),
    [Symbol.dispose]: () => client.close(),
  };
}

/** The token that a command would use, for commands that only look at it. */
export async function configuredToken(flags: ConnectionFlags): Promise<string> {
  return readToken(resolveToken(await settingsLayers(flags)));
}

async function settingsLayers(flags: ConnectionFlags): Promise<readonly SettingsLayer[]> {
  const { env } = process;
  const name = flags.context ?? (env.GRANTTY_CONTEXT || undefined);
  const path = contextFilePath(env);
  return [flags, environmentLayer(env), selectContext(path, await readContextFile(path), name)];
}

async function readPem(setting: string, path: string | undefined): Promise<Buffer | undefined> {
  if (path === undefined) return undefined;
  return readFile(path).catch((error: Error) => {
    throw new UsageError(`--${setting}: ${error.message}`);
  });
}

/** Milliseconds that a token command may take, and bytes that it may print. */
const TOKEN_COMMAND_TIMEOUT_MS = 30_000;
const MAX_TOKEN_OUTPUT_BYTES = 64 * 1024;

async function readToken(source: TokenSource): Promise<string> {
  switch (source.kind) {
    case 'literal':
      return source.token.trim();
    case 'file': {
      const text = await readFile(source.path, 'utf8').catch((error: Error) => {
        throw new UsageError(`the token file cannot be read: ${error.message}`);
      });
      return nonEmpty(text, source.path);
    }
    case 'command': {
      // What the command prints may hold the token, so its text stays out of the error.
      const { stdout } = await promisify(execFile)('/bin/sh', ['-c', source.command], {
        timeout: TOKEN_COMMAND_TIMEOUT_MS,
        maxBuffer: MAX_TOKEN_OUTPUT_BYTES,
      }).catch(() => {
        throw new UsageError(`the token command failed: ${source.command}`);
      });
      return nonEmpty(stdout, source.command);
    }
  }
}

function nonEmpty(text: string, where: string): string {
  const token = text.trim();
  if (token === '') throw new UsageError(`there is no token in what ${where} gives`);
  return token;
}
