/** The contexts of ~/.config/grantty/config.yaml: named sets of client settings. */
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { UsageError } from './exitCode.js';
import { type SettingsLayer, settingNames } from './settings.js';

export function contextFilePath(env: NodeJS.ProcessEnv): string {
  const base = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config');
  return join(base, 'grantty', 'config.yaml');
}

/**
 * The context that is named, else the file's `current`; an empty layer without file and name.
 * @throws UsageError for a file that is not sound or a context that is not there
 */
export async function readContext(path: string, name: string | undefined): Promise<SettingsLayer> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  });
  if (text === undefined) {
    if (name === undefined) return {};
    throw new UsageError(`there is no context "${name}": ${path} does not exist`);
  }
  const { parse } = await import('yaml');
  let document: unknown;
  try {
    document = parse(text);
  } catch (error) {
    throw new UsageError(`${path}: ${error instanceof Error ? error.message : 'not YAML'}`);
  }
  return selectContext(path, document, name);
}

/** snake_case in the file, as in all configuration of the project. */
const KEYS = new Map(
  settingNames.map((name) => [name.replace(/[A-Z]/g, (l) => `_${l.toLowerCase()}`), name]),
);

export function selectContext(
  path: string,
  document: unknown,
  name: string | undefined,
): SettingsLayer {
  const file = mapping(path, '', document);
  for (const key of Object.keys(file)) {
    if (key !== 'current' && key !== 'contexts') {
      throw new UsageError(`${path}: unknown key "${key}"; known are "current" and "contexts"`);
    }
  }
  const chosen = name ?? file.current;
  if (chosen === undefined) return {};
  if (typeof chosen !== 'string') throw new UsageError(`${path}: current: must be a text`);
  const contexts = mapping(path, 'contexts', file.contexts ?? {});
  if (!Object.hasOwn(contexts, chosen)) {
    const known = Object.keys(contexts).join(', ') || 'none';
    throw new UsageError(`${path}: there is no context "${chosen}" (there are: ${known})`);
  }
  const layer: Record<string, string> = {};
  for (const [key, value] of Object.entries(mapping(path, chosen, contexts[chosen]))) {
    const setting = KEYS.get(key);
    if (setting === undefined) {
      throw new UsageError(
        `${path}: contexts.${chosen}.${key}: unknown key; known are ${[...KEYS.keys()].join(', ')}`,
      );
    }
    if (typeof value !== 'string') {
      throw new UsageError(`${path}: contexts.${chosen}.${key}: must be a text (put it in quotes)`);
    }
    layer[setting] = value;
  }
  return layer;
}

function mapping(path: string, where: string, value: unknown): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new UsageError(`${path}: ${where || 'the file'} must be a mapping`);
}
