/** `ctx grant revoke`: by a caller, their own line; by the operator on the host, anything. */
import { Command } from 'commander';
import { counted } from '../../core/counted.js';
import type { Revoked } from '../../core/revoked.js';
import { action } from '../action.js';
import { parseTime } from '../auditTrail.js';
import { type ConnectionFlags, openConnection, withConnectionFlags } from '../connection.js';
import { UsageError } from '../exitCode.js';
import { note, writeLine } from '../output.js';

interface Flags extends ConnectionFlags {
  readonly iss?: string;
  readonly stateDir?: string;
  readonly subject?: string;
  readonly before: string;
  readonly kid?: string;
  readonly json?: boolean;
}

export function grantRevokeCommand(): Command {
  return withConnectionFlags(
    new Command('revoke')
      .description(
        'revoke your own token or one that descends from it; with --state-dir, on the host, any',
      )
      .argument('[jti]', 'id of the token (default: your own)'),
  )
    .option('--iss <issuer>', 'issuer of what is revoked (default: that of your token)')
    .option('--state-dir <dir>', 'as the operator: state directory of the server, running or not')
    .option('--sub, --subject <sub>', 'as the operator: tokens of this subject')
    .option('--before <time>', 'with --subject: issued before, RFC 3339 or seconds', 'now')
    .option('--kid <id>', 'as the operator: tokens that this key has signed')
    .option('--json', 'print JSON')
    .action(
      action(async (jti: string | undefined, flags: Flags) => {
        const { stateDir } = flags;
        if (stateDir !== undefined) return revokeAsOperator(stateDir, whatOf(jti, flags), flags);
        if (flags.subject !== undefined || flags.kid !== undefined) {
          throw new UsageError("--subject and --kid are the operator's: give --state-dir too");
        }
        using connection = await openConnection(flags);
        const issuer = flags.iss ?? '';
        const response = await connection.client.grants.revoke(
          jti === undefined ? {} : { token: { issuer, jti } },
        );
        if (flags.json) {
          const [{ RevokeResponseSchema }, { writeJson }] = await Promise.all([
            import('../../gen/public/grantty/v1/grant_service_pb.js'),
            import('../json.js'),
          ]);
          await writeJson(RevokeResponseSchema, response);
          return;
        }
        const { revokedTokens, closedStreams } = response;
        note(
          `revoked: ${counted(revokedTokens, 'token')}, ${counted(closedStreams, 'stream')} ended`,
        );
      }),
    );
}

/** What the operator names: exactly one of token, subject and key, and its issuer. */
export function whatOf(jti: string | undefined, { iss, subject, before, kid }: Flags): Revoked {
  if (iss === undefined) throw new UsageError('--iss is needed with --state-dir');
  const named = [jti, subject, kid].filter((one) => one !== undefined);
  if (named.length !== 1) throw new UsageError('name one of: a token id, --subject, --kid');
  if (jti !== undefined) return { kind: 'token', issuer: iss, jti };
  if (kid !== undefined) return { kind: 'key', issuer: iss, keyId: kid };
  const seconds = parseTime('--before', before) / 1000;
  // Tokens carry whole seconds: what was issued in this very one is meant too.
  const issuedBefore = before === 'now' ? Math.floor(seconds) + 1 : Math.ceil(seconds);
  return { kind: 'subject', issuer: iss, subject: subject ?? '', issuedBefore };
}

async function revokeAsOperator(stateDir: string, what: Revoked, { json }: Flags) {
  const [{ resolve }, { revokeOnHost }] = await Promise.all([
    import('node:path'),
    import('../../app/hostRevocation.js'),
  ]);
  const { at, closedStreams } = await revokeOnHost(resolve(stateDir), what);
  const revokedAt = new Date(at).toISOString();
  if (json) {
    await writeLine(JSON.stringify({ revoked_at: revokedAt, closed_streams: closedStreams }));
    return undefined;
  }
  note(
    closedStreams === undefined
      ? `revoked ${revokedAt}; no server runs, the next one will honour it`
      : `revoked ${revokedAt}, ${counted(closedStreams, 'stream')} ended`,
  );
  return undefined;
}
