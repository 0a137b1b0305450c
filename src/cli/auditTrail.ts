/** What all `ctx audit` commands share: where the trail is, times, and whether it can be believed. */
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from './exitCode.js';
import { note } from './output.js';

export interface TrailFlags {
  readonly stateDir?: string;
  readonly auditDir?: string;
  readonly json?: boolean;
}

export function withTrailFlags(command: Command): Command {
  return command
    .option('--state-dir <dir>', 'state directory that the trail is in (default: that of the user)')
    .option('--audit-dir <dir>', 'directory of the trail itself, where audit.dir is configured')
    .option('--json', 'print JSON');
}

export async function trailDir({ stateDir, auditDir }: TrailFlags): Promise<string> {
  if (auditDir !== undefined) return resolve(auditDir);
  if (stateDir !== undefined) return join(resolve(stateDir), 'audit');
  const { defaultStateDir } = await import('../app/defaultStateDir.js');
  return join(defaultStateDir(), 'audit');
}

/** The trail, and a word on standard error when what it says may not be what was written. */
export async function believableTrail(flags: TrailFlags): Promise<string> {
  const dir = await trailDir(flags);
  const { verifyTrail } = await import('../audit/verify.js');
  const { state, firstBad, notes } = await verifyTrail(dir);
  if (state === 'tampered') {
    const { file, line, why } = firstBad ?? { file: dir, line: 0, why: 'unknown' };
    note(`this trail was tampered with (${file}:${line} ${why}): do not rely on the answer`);
  } else if (state === 'incomplete') {
    note(`this trail is incomplete, and so may the answer be: ${notes.join('; ')}`);
  }
  return dir;
}

/** `now`, a date and time as RFC 3339 has it, or seconds since the Unix epoch. In milliseconds. */
export function parseTime(option: string, text: string): number {
  if (text === 'now') return Date.now();
  const ms = /^\d{1,12}(\.\d+)?$/.test(text) ? Number(text) * 1000 : dateOf(text);
  if (Number.isFinite(ms)) return ms;
  throw new UsageError(
    `${option} "${text}": write now, seconds since 1970, or a time like 2025-01-31T12:00:00Z`,
  );
}

/** Without a zone it would mean another time on another host. */
function dateOf(text: string): number {
  return /^\d{4}-\d{2}-\d{2}(T[\d:.]+(Z|[+-]\d{2}:\d{2}))?$/.test(text)
    ? Date.parse(text)
    : Number.NaN;
}

export function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}
