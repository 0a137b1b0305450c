/** The server's configuration: one YAML file, checked whole before anything starts. */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { omittableFields } from '../audit/fieldFilter.js';
import { MAX_DEPTH } from '../auth/claims.js';
import { proofModes } from '../auth/proof.js';
import { capabilities } from '../core/capability.js';
import { fileFailure } from '../core/fileFailure.js';
import {
  MAX_LIVE_TERMINALS_PER_OWNER,
  MAX_LOG_BYTES_PER_OWNER,
  MAX_STREAMS_PER_PRINCIPAL,
} from '../core/limits.js';
import { isSelector } from '../core/selector.js';
import { configProblems } from './configProblems.js';
import { type ConfigurationProblem, configurationError } from './configurationError.js';
import { isLoopback, parseListen } from './listen.js';

const path = z.string().min(1);

const listen = z.string().transform((text, context) => {
  const address = parseListen(text);
  if (address) return address;
  context.addIssue(
    'must be HOST:PORT or [IPV6]:PORT, like 127.0.0.1:7443; a port is at most 65535',
  );
  return z.NEVER;
});

/** From 1 MiB to 1 TiB. */
const logBytes = z
  .int()
  .min(1024 ** 2)
  .max(1024 ** 4);

/** From a minute to a hundred years. */
const logSeconds = z.int().min(60).max(3_153_600_000);

/** From a second to a year. */
const terminalSeconds = z.int().min(1).max(31_536_000);

const selector = z
  .string()
  .refine(isSelector, 'must be a name, a prefix of names followed by "*", or "*"');

/** An address that says who may sign: by TLS, or not leaving this host. */
const jwksUrl = z.string().refine((text) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.username !== '' || url.password !== '') return false;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(host));
}, 'must be an https URL without credentials, or an http one to a loopback address');

const issuer = z
  .strictObject({
    /** The exact `iss` of its tokens. */
    issuer: z.string().min(1),
    /** Where its JWK set is: a file, or a URL that is read again every few minutes. */
    jwks_file: path.optional(),
    jwks_url: jwksUrl.optional(),
    /** What its tokens may reach at most. Absent: whatever they say. */
    ceiling: z
      .strictObject({
        owners: z.array(selector).min(1),
        actions: z.array(z.enum(capabilities)).min(1),
      })
      .optional(),
  })
  .refine((one) => (one.jwks_file === undefined) !== (one.jwks_url === undefined), {
    error: 'must have either jwks_file or jwks_url',
    // Beside other mistakes too: all are told at once.
    when: ({ value }) => typeof value === 'object' && value !== null,
  });

/** Steps of a line unless the configuration says otherwise. */
const DEFAULT_MAX_DEPTH = 8;

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

/** The shape of the file. docs/operations.md has every key of it. */
export const configuration = z.strictObject({
  state_dir: path.optional(),
  listen: listen.optional(),
  /** What the server calls itself: the `aud` that tokens must have. */
  audience: z.string().min(1),
  tls: z.strictObject({ cert: path, key: path, client_ca: path.optional() }),
  issuers: z.array(issuer).min(1),
  /** Tokens that the server signs itself, from tokens that it was shown. */
  delegation: z
    .strictObject({
      /** Their `iss`. Absent: one made with the state directory. */
      issuer: z.string().min(1).optional(),
      /** Steps that a line of tokens may have below one of an issuer above. */
      max_depth: z.int().min(0).max(MAX_DEPTH).default(DEFAULT_MAX_DEPTH),
    })
    .prefault({}),
  /** Whether tokens must be bound to client certificates. Absent: required beyond loopback, else if-present. */
  pop: z.enum(proofModes).optional(),
  /** Directory of the policies that decide after the grants. Absent: those that come with the program. */
  policy: path.optional(),
  /** Whom terminals run as. Absent: by-uid where the server is root, else shared-uid. */
  run_as: runAs.optional(),
  log: z
    .strictObject({
      level: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal']).default('info'),
      /** When output is made durable, see docs/operations.md. */
      sync: z.enum(['interval', 'batch', 'off']).default('interval'),
      /** Bytes of events.jsonl above which it is sealed and another begun. Absent: never. */
      seal_bytes: logBytes.optional(),
      /** Bytes of one terminal's log above which its oldest sealed parts go. Absent: never. */
      retain_bytes: logBytes.optional(),
      /** Seconds after which a sealed part of a log goes. Absent: never. */
      retain_seconds: logSeconds.optional(),
    })
    .prefault({}),
  /** Control groups of terminals, see docs/operations.md. */
  cgroups: z
    .strictObject({
      use: z.enum(['never', 'if-possible', 'required']).default('never'),
      /** Of all processes of one terminal together. Absent: no limit. */
      memory_bytes: z
        .int()
        .min(1024 ** 2)
        .max(1024 ** 4)
        .optional(),
      processes: z.int().min(4).max(4_194_304).optional(),
      /** 100 is one processor. */
      cpu_percent: z.int().min(1).max(100_000).optional(),
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
      /** Living terminals of one owner. */
      terminals_per_owner: z.int().min(1).max(4096).default(MAX_LIVE_TERMINALS_PER_OWNER),
      /** Bytes of log over all terminals of one owner. */
      log_bytes_per_owner: logBytes.default(MAX_LOG_BYTES_PER_OWNER),
      /** Seconds that a terminal may go without input, output and attachment. Absent: any time. */
      terminal_idle_seconds: terminalSeconds.optional(),
      /** Seconds that a process instance may live. Absent: any time. */
      terminal_lifetime_seconds: terminalSeconds.optional(),
      /** Open streams of one principal. */
      streams_per_principal: z.int().min(1).max(65_536).default(MAX_STREAMS_PER_PRINCIPAL),
      /** Seconds that a new connection may go without a call. */
      first_call_seconds: z.int().min(1).max(600).default(10),
      /** Seconds that a connection may go without a call in progress. */
      idle_seconds: z.int().min(10).max(86_400).default(300),
      /** Seconds after which a connection is ended, its streams told before. */
      connection_age_seconds: z.int().min(10).max(2_592_000).default(86_400),
    })
    .prefault({}),
});

export type Configuration = z.infer<typeof configuration>;

/** Relative paths in the file are meant from its folder. @throws ConfigurationError */
export async function readConfiguration(file: string): Promise<Configuration> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw configurationError(file, [
      {
        text: `the configuration cannot be read: ${fileFailure(error)}`,
        remedy: 'give the path of a YAML file that this user can read',
      },
    ]);
  });
  return parseConfiguration(file, text);
}

/** @throws ConfigurationError */
export function parseConfiguration(file: string, text: string): Configuration {
  let document: unknown;
  try {
    document = parse(text);
  } catch (error) {
    const why = error instanceof Error ? error.message.trimEnd() : 'unreadable';
    throw configurationError(file, [{ text: `this is not YAML: ${why}` }]);
  }
  return checkConfiguration(file, document);
}

/** `file` is named in errors, and relative paths are meant from its folder. @throws ConfigurationError */
export function checkConfiguration(file: string, document: unknown): Configuration {
  const checked = configuration.safeParse(document);
  if (!checked.success) {
    const problems = configProblems(configuration, document, checked.error.issues);
    throw configurationError(file, problems);
  }
  const problems = issuerProblems(checked.data);
  if (problems.length > 0) throw configurationError(file, problems);
  return withAbsolutePaths(checked.data, dirname(resolve(file)));
}

/** Each issuer has keys of its own, and nobody else's. */
function issuerProblems({ issuers, delegation }: Configuration): ConfigurationProblem[] {
  return issuers.flatMap(({ issuer }, at) => {
    const key = `issuers[${at}].issuer`;
    const first = issuers.findIndex((one) => one.issuer === issuer);
    if (first < at) return [{ key, text: `${key} is that of issuers[${first}] too` }];
    if (issuer !== delegation.issuer) return [];
    const text = `${key} is delegation.issuer too, whose tokens are signed by a key of this server's own: give one of them another name`;
    return [{ key, text }];
  });
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
    issuers: config.issuers.map((one) => ({
      ...one,
      ...(one.jwks_file !== undefined && { jwks_file: resolve(base, one.jwks_file) }),
    })),
  };
}
