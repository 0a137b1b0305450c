/** What all `ctx audit` commands share: where the trail is, times, and whether it can be believed. */
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { type Capability, capabilities, isCapability } from '../core/capability.js';
import { nearest } from '../core/nearest.js';
import { UsageError } from './exitCode.js';
import { note } from './output.js';

export interface TrailFlags {
  readonly stateDir?: string;
  readonly auditDir?: string;
  readonly config?: string;
  readonly json?: boolean;
}

export function withTrailFlags(command: Command): Command {
  return command
    .option('--config <file>', "the server's YAML configuration: it says where the trail is")
    .option(
      '--state-dir <dir>',
      'state directory that the trail is in (default: GRANTTY_STATE_DIR, else that of the user)',
    )
    .option('--audit-dir <dir>', 'directory of the trail itself, where audit.dir is configured')
    .option('--json', 'print JSON');
}

/** Where to look, whether or not there is one. */
export async function trailDir({ stateDir, auditDir, config }: TrailFlags): Promise<string> {
  if (auditDir !== undefined) return resolve(auditDir);
  if (config !== undefined) return configuredDir(config, stateDir);
  if (stateDir !== undefined) return join(resolve(stateDir), 'audit');
  const { defaultStateDir } = await import('../app/defaultStateDir.js');
  return join(defaultStateDir(), 'audit');
}

async function configuredDir(file: string, stateDir: string | undefined): Promise<string> {
  const { readConfiguration } = await import('../app/config.js');
  const { audit, state_dir: configured } = await readConfiguration(file);
  if (audit.dir !== undefined) return audit.dir;
  const dir = stateDir ?? configured;
  if (dir !== undefined) return join(resolve(dir), 'audit');
  throw new UsageError(`${file} has neither state_dir nor audit.dir: give --state-dir too`);
}

/**
 * The trail, and a word on standard error when what it says may not be what was written.
 * @throws Error when there is none, as an answer from nothing would be taken for one
 */
export async function believableTrail(flags: TrailFlags): Promise<string> {
  const dir = await trailDir(flags);
  await requireTrail(dir);
  const { verifyTrail } = await import('../audit/verify.js');
  const { state, firstBad, notes } = await verifyTrail(dir);
  if (state === 'tampered') {
    const { file, line, why } = firstBad ?? { file: dir, line: 0, why: 'unknown' };
    note(
      `the trail in ${dir} was tampered with (${file}:${line} ${why}): do not rely on the answer`,
    );
  } else if (state === 'incomplete') {
    note(`the trail in ${dir} is incomplete, and so may the answer be: ${notes.join('; ')}`);
  }
  return dir;
}

/** @throws Error that says where was looked, and how to say where it is */
async function requireTrail(dir: string): Promise<void> {
  const { listDayFiles } = await import('../audit/trailFiles.js');
  const { fileFailure } = await import('../core/fileFailure.js');
  const files = await listDayFiles(dir).catch((error: unknown) => {
    throw new Error(`the trail in ${dir} cannot be read: ${fileFailure(error)}`);
  });
  if (files.length === 0) throw new Error(noTrail(dir));
}

export function noTrail(dir: string): string {
  return `there is no audit trail in ${dir}: say where it is by --config, --state-dir or --audit-dir`;
}

/** @throws UsageError for what is no action */
export function parseAction(text: string): Capability {
  if (isCapability(text)) return text;
  const near = nearest(text, capabilities);
  throw new UsageError(
    `"${text}" is no action; ${near === undefined ? `there are ${capabilities.join(', ')}` : `did you mean ${near}?`}`,
  );
}

/** `now`, a date and time as RFC 3339 has it, or seconds since the Unix epoch. In milliseconds. */
export function parseTime(option: string, text: string): number {
  if (text === 'now') return Date.now();
  if (/^\d{4}$/.test(text)) {
    throw new UsageError(`${option} "${text}" would be seconds after 1970: write ${text}-01-01`);
  }
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
