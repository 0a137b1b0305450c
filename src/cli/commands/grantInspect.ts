/** `ctx grant inspect`: what a token says, read here without a server. */
import { Command } from 'commander';
import { action } from '../action.js';
import { type ConnectionFlags, configuredToken, withTokenFlags } from '../connection.js';
import { ExitCode, UsageError } from '../exitCode.js';
import { readAll } from '../input.js';
import { note, writeLine } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly json?: boolean;
}

export function grantInspectCommand(): Command {
  return withTokenFlags(
    new Command('inspect')
      .description('print what a token says; its signature is not checked')
      .argument('[token]', 'token, or - for standard input (default: the configured one)'),
  )
    .option('--json', 'print header and claims as JSON')
    .action(
      action(async (given: string | undefined, flags: Flags) => {
        const token = await tokenOf(given, flags);
        const decoded = decodeToken(token);
        if (flags.json) {
          await writeLine(JSON.stringify(decoded));
          return ExitCode.OK;
        }
        const { tokenText } = await import('../tokenText.js');
        await writeLine(tokenText(decoded, Date.now()));
        note('the signature was not checked: a server decides whether the token holds');
        return ExitCode.OK;
      }),
    );
}

async function tokenOf(given: string | undefined, flags: Flags): Promise<string> {
  if (given === undefined) return configuredToken(flags);
  if (given !== '-') return given;
  return Buffer.from(await readAll(process.stdin))
    .toString('utf8')
    .trim();
}

export interface UnverifiedToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** The two readable parts of a JWS in compact form (RFC 7515, section 7.1). Nothing is verified. */
export function decodeToken(token: string): UnverifiedToken {
  const parts = token.split('.');
  if (parts.length !== 3) throw new UsageError('this is not a token: it has not three parts');
  return { header: jsonPart(parts[0], 'header'), claims: jsonPart(parts[1], 'payload') };
}

function jsonPart(part: string | undefined, name: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(Buffer.from(part ?? '', 'base64url').toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>;
    }
  } catch {
    // Falls through: whatever was wrong, the part is no JSON object.
  }
  throw new UsageError(`this is not a token: its ${name} is not a JSON object`);
}
