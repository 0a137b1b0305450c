/** The contexts of ~/.config/grantty/config.yaml: named sets of client settings. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { errorCode } from '../core/errors.js';
import { UsageError } from './exitCode.js';
import { type SettingsLayer, settingNames } from './settings.js';

export interface ContextFile {
  /** Name of the context that counts where none is named. */
  readonly current?: string;
  readonly contexts: Readonly<Record<string, SettingsLayer>>;
}

export function contextFilePath(env: NodeJS.ProcessEnv): string {
  const base = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config');
  return join(base, 'grantty', 'config.yaml');
}

/** Without a file there are no contexts. @throws UsageError for a file that is not sound */
export async function readContextFile(path: string): Promise<ContextFile> {
  const text = await readContextText(path);
  if (text === undefined) return { contexts: {} };
  const { parse } = await import('yaml');
  let document: unknown;
  try {
    document = parse(text);
  } catch (error) {
    throw new UsageError(`${path}: ${error instanceof Error ? error.message : 'not YAML'}`);
  }
  return parseContextFile(path, document ?? {});
}

export async function readContextText(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
}

/**
 * The context that is named, else the file's `current`, else an empty layer.
 * @throws UsageError for a context that is not there
 */
export function selectContext(
  path: string,
  { current, contexts }: ContextFile,
  name: string | undefined,
): SettingsLayer {
  const chosen = name ?? current;
  if (chosen === undefined) return {};
  if (!Object.hasOwn(contexts, chosen)) {
    const known = Object.keys(contexts).join(', ') || 'none';
    throw new UsageError(`${path}: there is no context "${chosen}" (there are: ${known})`);
  }
  return contexts[chosen] ?? {};
}

/** snake_case in the file, as in all configuration of the project. */
export function contextKey(setting: string): string {
  return setting.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

const SETTINGS = new Map(settingNames.map((name) => [contextKey(name), name]));

/** Settings that are paths, meant from the folder of the file. */
export const PATH_SETTINGS: ReadonlySet<string> = new Set(['ca', 'tokenFile', 'cert', 'key']);

/** @throws UsageError that names the first thing that is wrong */
export function parseContextFile(path: string, document: unknown): ContextFile {
  const file = mapping(path, '', document);
  for (const key of Object.keys(file)) {
    if (key !== 'current' && key !== 'contexts') {
      throw new UsageError(`${path}: unknown key "${key}"; known are "current" and "contexts"`);
    }
  }
  const { current } = file;
  if (current !== undefined && typeof current !== 'string') {
    throw new UsageError(`${path}: current: must be a text`);
  }
  const contexts = Object.entries(mapping(path, 'contexts', file.contexts ?? {})).map(
    ([name, settings]) => [name, layerOf(path, name, settings)] as const,
  );
  return { ...(current !== undefined && { current }), contexts: Object.fromEntries(contexts) };
}

function layerOf(path: string, name: string, settings: unknown): SettingsLayer {
  const layer: Record<string, string> = {};
  for (const [key, value] of Object.entries(mapping(path, `contexts.${name}`, settings))) {
    const setting = SETTINGS.get(key);
    if (setting === undefined) {
      throw new UsageError(
        `${path}: contexts.${name}.${key}: unknown key; known are ${[...SETTINGS.keys()].join(', ')}`,
      );
    }
    if (typeof value !== 'string') {
      throw new UsageError(`${path}: contexts.${name}.${key}: must be a text (put it in quotes)`);
    }
    layer[setting] = PATH_SETTINGS.has(setting) ? resolve(dirname(path), value) : value;
  }
  return layer;
}

function mapping(path: string, where: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new UsageError(`${path}: ${where || 'the file'} must be a mapping`);
}
