/** `ctx grant mint`: signs a token with an issuer key, without a server. */
import { readFile } from 'node:fs/promises';
import { Command, Option } from 'commander';
import { type Capability, capabilities } from '../../core/capability.js';
import { GranttyError } from '../../core/errors.js';
import { action } from '../action.js';
import { certificateThumbprintOf } from '../certificateThumbprint.js';
import { UsageError } from '../exitCode.js';
import { flagOfClaim, inFlags } from '../flagNames.js';
import { writeLine } from '../output.js';
import { collect, parseDuration } from '../values.js';

export interface MintFlags {
  readonly key: string;
  readonly subject: string;
  readonly actions: string;
  readonly owner: string;
  readonly agent: string;
  readonly session: string;
  readonly terminal: string;
  readonly ttl: number;
  readonly iss: string;
  readonly aud: string;
  readonly kid?: string;
  readonly cnf?: string;
  readonly constraint?: readonly string[];
  readonly json?: boolean;
}

/** What `serve --dev` expects, so that its key needs no more flags. */
export const DEFAULT_ISSUER = 'urn:grantty:dev';
export const DEFAULT_AUDIENCE = 'urn:grantty:dev';

export function grantMintCommand(): Command {
  return new Command('mint')
    .description('sign a token that carries one grant')
    .addOption(
      new Option('--key <file>', "the issuer's private key, a JWK")
        .env('GRANTTY_ISSUER_KEY')
        .makeOptionMandatory(),
    )
    .requiredOption('--sub, --subject <sub>', 'who the token is for')
    .requiredOption('--actions <list>', `separated by commas, of ${capabilities.join(', ')}`)
    .requiredOption('--owner <selector>', 'owner: a name, prefix*, or * (never matches owner 0)')
    .requiredOption('--agent <selector>', 'agent')
    .requiredOption('--session <selector>', 'session')
    .requiredOption('--terminal <selector>', 'terminal')
    .addOption(
      new Option('--ttl <duration>', 'life of the token, at most 1h')
        .argParser(parseDuration)
        .default(600_000, '10m'),
    )
    .option('--iss <issuer>', 'issuer, as the server knows it', DEFAULT_ISSUER)
    .option('--aud <audience>', 'audience, as the server calls itself', DEFAULT_AUDIENCE)
    .option('--kid <id>', "key id (default: the key's own)")
    .option('--cnf <cert>', 'PEM of the client certificate that the token is bound to')
    .option(
      '--constraint <name=json>',
      'constraint of the grant, like max_terminals=3 or signals=["SIGINT"]; may be repeated',
      collect,
    )
    .option('--json', 'print {"token": ...}')
    .action(
      action(async (flags: MintFlags) => {
        const { mintToken } = await import('../../auth/mint.js');
        const thumbprint =
          flags.cnf === undefined ? undefined : await certificateThumbprintOf('--cnf', flags.cnf);
        const token = await mintToken({
          key: await readKey(flags.key),
          issuer: flags.iss,
          audience: flags.aud,
          subject: flags.subject,
          ttl: Math.round(flags.ttl / 1000),
          grants: [await grantOf(flags)],
          now: Date.now(),
          ...(flags.kid !== undefined && { kid: flags.kid }),
          ...(thumbprint !== undefined && { x5tS256: thumbprint }),
        }).catch((error: unknown) => {
          // All of the token comes from the command line.
          throw error instanceof GranttyError ? new UsageError(inFlags(error, flagOfClaim)) : error;
        });
        await writeLine(flags.json ? JSON.stringify({ token }) : token);
      }),
    );
}

/** The grant as it stands in `authorization_details`; minting checks it as a server would. */
export async function grantOf(flags: MintFlags): Promise<Readonly<Record<string, unknown>>> {
  const { GRANT_TYPE } = await import('../../core/grant.js');
  const constraints = parseConstraintFlags(flags.constraint);
  return {
    type: GRANT_TYPE,
    id: 'g1',
    actions: parseActionsFlag(flags.actions),
    resource: {
      owner: flags.owner,
      agent: flags.agent,
      session: flags.session,
      terminal: flags.terminal,
    },
    ...(Object.keys(constraints).length > 0 && { constraints }),
  };
}

/** Names that are none are told here, where they may be quoted. */
export function parseActionsFlag(text: string): readonly Capability[] {
  return text.split(',').map((one) => {
    const name = one.trim();
    const known = capabilities.find((capability) => capability === name);
    if (known !== undefined) return known;
    throw new UsageError(`--actions: "${name}" is no action; known are ${capabilities.join(', ')}`);
  });
}

/** `name=json`; what is no JSON is taken as text, so that `signal_bytes=allow` works. */
export function parseConstraintFlags(flags: readonly string[] = []): Record<string, unknown> {
  const constraints: Record<string, unknown> = {};
  for (const flag of flags) {
    const at = flag.indexOf('=');
    if (at < 1) throw new UsageError(`--constraint "${flag}": write NAME=JSON`);
    const name = flag.slice(0, at);
    if (Object.hasOwn(constraints, name)) {
      throw new UsageError(`--constraint "${name}" is given twice`);
    }
    constraints[name] = jsonOrText(flag.slice(at + 1));
  }
  return constraints;
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function readKey(path: string): Promise<Record<string, string>> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UsageError(`--key: ${error.message}`);
  });
  // The parser's own message would quote the text, and the text is a secret.
  const key = jsonOrText(text);
  if (typeof key === 'object' && key !== null && 'kty' in key) return key as Record<string, string>;
  throw new UsageError(`--key: ${path} is not a JWK`);
}
