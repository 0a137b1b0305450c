/** The checks of `ctx doctor` from a client's side: settings, token, server, clocks. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { certificateFinding } from '../app/doctor/certificateFinding.js';
import { type Finding, fail, ok, warn } from '../app/doctor/finding.js';
import { SUPERVISOR_CHECK } from '../app/doctor/stateDirFindings.js';
import { counted } from '../core/counted.js';
import { errorCode, messageOf } from '../core/errors.js';
import {
  type GetServerInfoResponse,
  IsolationMode,
} from '../gen/public/grantty/v1/server_service_pb.js';
import { describeFailure, hintFor } from './action.js';
import { decodeToken } from './commands/grantInspect.js';
import { type ConnectionFlags, configuredToken, openConnection, settingsOf } from './connection.js';

/** Milliseconds that the server may take to answer. */
const SERVER_TIMEOUT_MS = 5_000;
/** Seconds below which a token is as good as expired to a person at work. */
const SHORT_TOKEN_S = 60;
/** Seconds that clocks may differ by before tokens are refused, and before one should look. */
const SKEW_LIMIT_S = 30;
const SKEW_WARNING_S = 5;

export async function serverFindings(
  flags: ConnectionFlags,
  version: string,
  /** What was found on this host, where the server may be. */
  ofHost: readonly Finding[] = [],
): Promise<readonly Finding[]> {
  const settings = await settingsOf(flags).catch((error: Error) => error);
  if (settings instanceof Error) {
    return [warn('settings', 'no server was looked at', settings.message)];
  }
  const now = Date.now();
  const findings = [ok('settings', `server ${settings.address}`)];
  const { ca, cert, key } = settings;
  if (ca !== undefined) findings.push(await certificateFinding('CA', ca, undefined, now));
  if (cert !== undefined) {
    findings.push(await certificateFinding('client certificate', cert, key, now));
  }
  findings.push(await tokenFinding(flags, now, cert !== undefined));
  findings.push(...(await answerFindings(flags, version, waitsOnHost(ofHost))));
  return findings;
}

async function tokenFinding(
  flags: ConnectionFlags,
  now: number,
  hasCertificate: boolean,
): Promise<Finding> {
  try {
    const { claims } = decodeToken(await configuredToken(flags));
    const left = typeof claims.exp === 'number' ? Math.round(claims.exp - now / 1000) : 0;
    const grants = Array.isArray(claims.authorization_details) ? claims.authorization_details : [];
    if (left <= 0) return fail('token', `expired ${-left} s ago`, 'get a new one');
    if (claims.cnf !== undefined && !hasCertificate) {
      return fail('token', 'is bound to a client certificate', 'give --cert and --key');
    }
    const found = `${counted(grants.length, 'grant')}, ${left} s left`;
    if (grants.length === 0) return warn('token', found, 'it allows nothing: get another one');
    return left < SHORT_TOKEN_S
      ? warn('token', found, 'get a new one; with --token-file it is read again by itself')
      : ok('token', found);
  } catch (error) {
    return fail('token', messageOf(error), 'see "ctx grant mint", or ask who issues tokens');
  }
}

/** Whether a server of this host has no supervisor yet, without which it answers nobody. */
function waitsOnHost(ofHost: readonly Finding[]): boolean {
  return ofHost.some(({ check, level }) => check === SUPERVISOR_CHECK && level === 'fail');
}

async function answerFindings(
  flags: ConnectionFlags,
  version: string,
  waits: boolean,
): Promise<Finding[]> {
  using connection = await openConnection(flags);
  try {
    const before = Date.now();
    const info = await connection.client.server.getServerInfo({}, { timeoutMs: SERVER_TIMEOUT_MS });
    return [
      serverFinding(info, version),
      ...(info.time ? [clockFinding(timestampMs(info.time), before, Date.now())] : []),
    ];
  } catch (error) {
    const advice = hintFor(error) ?? 'see the log of the server';
    const hasAnswered = ['UNAUTHENTICATED', 'PERMISSION_DENIED'].includes(errorCode(error) ?? '');
    if (waits && !hasAnswered) {
      const found = `waits for its supervisor: ${describeFailure(error)}`;
      return [fail('server', found, 'see "supervisor" above; it answers once that does')];
    }
    return hasAnswered
      ? [ok('server', 'answers'), fail('token', `refused: ${describeFailure(error)}`, advice)]
      : [fail('server', describeFailure(error), advice)];
  }
}

function serverFinding(info: GetServerInfoResponse, version: string): Finding {
  const mode = IsolationMode[info.isolationMode]?.toLowerCase().replaceAll('_', ' ');
  const found = `version ${info.version}, terminals run ${mode}`;
  if (info.version !== version) return warn('server', found, `this program is ${version}`);
  return info.isolationMode === IsolationMode.SHARED_UID
    ? warn('server', found, 'for development only: they can reach its files and keys')
    : ok('server', found);
}

/** Half of the call's time is the doubt that there is. */
function clockFinding(server: number, before: number, after: number): Finding {
  const difference = Math.abs(server - (before + after) / 2) - (after - before) / 2;
  const seconds = Math.max(0, difference / 1000);
  const found = `${seconds.toFixed(1)} s off the server's`;
  const advice = 'set the clocks by NTP';
  if (seconds > SKEW_LIMIT_S) return fail('clock', found, `${advice}: tokens are refused`);
  return seconds > SKEW_WARNING_S ? warn('clock', found, advice) : ok('clock', found);
}
