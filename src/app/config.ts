/** The server's configuration: one YAML file, checked whole before anything starts. */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { omittableFields } from '../audit/fieldFilter.js';
import { capabilities } from '../core/capability.js';
import { MAX_STREAMS_PER_PRINCIPAL } from '../core/limits.js';
import { isSelector } from '../core/selector.js';
import { parseListen } from './listen.js';

const path = z.string().min(1);

const listen = z.string().transform((text, context) => {
  const address = parseListen(text);
  if (address) return address;
  context.addIssue('must be HOST:PORT or [IPV6]:PORT, like 127.0.0.1:7443');
  return z.NEVER;
});

const selector = z
  .string()
  .refine(isSelector, 'must be a name, a prefix of names followed by "*", or "*"');

const issuer = z.strictObject({
  /** The exact `iss` of its tokens. */
  issuer: z.string().min(1),
  /** File with its JWK set. */
  jwks_file: path,
  /** What its tokens may reach at most. Absent: whatever they say. */
  ceiling: z
    .strictObject({
      owners: z.array(selector).min(1),
      actions: z.array(z.enum(capabilities)).min(1),
    })
    .optional(),
});

/** Greatest uid that names a user: the one above means "unchanged" to setuid(2). */
const MAX_UID = 4_294_967_294;

const runAs = z.discriminatedUnion('mode', [
  z.strictObject({
    mode: z.literal('by-uid'),
    min_uid: z.int().min(1).max(MAX_UID).default(1000),
  }),
  z.strictObject({ mode: z.literal('fixed-user'), uid: z.int().min(1).max(MAX_UID) }),
  z.strictObject({ mode: z.literal('shared-uid') }),
]);

const configuration = z.strictObject({
  state_dir: path.optional(),
  listen: listen.optional(),
  /** What the server calls itself: the `aud` that tokens must have. */
  audience: z.string().min(1),
  tls: z.strictObject({ cert: path, key: path, client_ca: path.optional() }),
  issuers: z.array(issuer).min(1),
  /** Directory of the policies that decide after the grants. Absent: those that come with the program. */
  policy: path.optional(),
  /** Whom terminals run as. Absent: by-uid where the server is root, else shared-uid. */
  run_as: runAs.optional(),
  log: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']).default('info'),
      /** When output is made durable, see docs/operations.md. */
      sync: z.enum(['interval', 'batch', 'off']).default('interval'),
    })
    .prefault({}),
  audit: z
    .strictObject({
      /** Where the trail is kept. Absent: `audit` in the state directory. */
      dir: path.optional(),
      /** Fields that are not recorded, see docs/operations.md. */
      omit: z.array(z.enum(omittableFields)).default([]),
    })
    .prefault({}),
  limits: z
    .strictObject({
      /** Connections at one time. */
      connections: z.int().min(1).max(65_536).default(1024),
      /** Open streams of one principal. */
      streams_per_principal: z.int().min(1).max(65_536).default(MAX_STREAMS_PER_PRINCIPAL),
    })
    .prefault({}),
});

export type Configuration = z.infer<typeof configuration>;

/** The configuration is wrong; the message names the file and every key that is. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError';
}

/** Relative paths in the file are meant from its folder. @throws ConfigurationError */
export async function readConfiguration(file: string): Promise<Configuration> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new ConfigurationError(`the configuration cannot be read: ${error.message}`);
  });
  return parseConfiguration(file, text);
}

/** @throws ConfigurationError */
export function parseConfiguration(file: string, text: string): Configuration {
  let document: unknown;
  try {
    document = parse(text);
  } catch (error) {
    throw new ConfigurationError(`${file}: ${error instanceof Error ? error.message : 'not YAML'}`);
  }
  return checkConfiguration(file, document);
}

/** `file` is named in errors, and relative paths are meant from its folder. @throws ConfigurationError */
export function checkConfiguration(file: string, document: unknown): Configuration {
  const checked = configuration.safeParse(document);
  if (checked.success) return withAbsolutePaths(checked.data, dirname(resolve(file)));
  const problems = checked.error.issues.map((issue) => `  ${describe(issue)}`);
  throw new ConfigurationError(`${file} is not valid:\n${problems.join('\n')}`);
}

function describe(issue: z.core.$ZodIssue): string {
  const where = issue.path.reduce<string>(
    (text, key) =>
      typeof key === 'number' ? `${text}[${key}]` : `${text}${text && '.'}${String(key)}`,
    '',
  );
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.map((key) => (where ? `${where}.${key}` : key));
    return `${keys.join(', ')}: unknown key`;
  }
  return `${where || 'the file'}: ${issue.message}`;
}

function withAbsolutePaths(config: Configuration, base: string): Configuration {
  const { tls, audit } = config;
  return {
    ...config,
    audit: { ...audit, ...(audit.dir !== undefined && { dir: resolve(base, audit.dir) }) },
    ...(config.state_dir !== undefined && { state_dir: resolve(base, config.state_dir) }),
    ...(config.policy !== undefined && { policy: resolve(base, config.policy) }),
    tls: {
      cert: resolve(base, tls.cert),
      key: resolve(base, tls.key),
      ...(tls.client_ca !== undefined && { client_ca: resolve(base, tls.client_ca) }),
    },
    issuers: config.issuers.map((one) => ({ ...one, jwks_file: resolve(base, one.jwks_file) })),
  };
}
