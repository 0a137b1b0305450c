/** Client settings: flags before environment before the context of the configuration file. */
import { UsageError } from './exitCode.js';

/** Where the token is: exactly one of the three. */
export type TokenSource =
  | { readonly kind: 'literal'; readonly token: string }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'command'; readonly command: string };

export interface Settings {
  readonly address: string;
  readonly token: TokenSource;
  /** Paths of PEM files. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly serverName?: string;
  /** Owner of terminals that a command names by id alone. */
  readonly owner?: string;
}

/** One layer of settings, as flags, environment or a context give them. */
export interface SettingsLayer {
  readonly address?: string | undefined;
  readonly ca?: string | undefined;
  readonly token?: string | undefined;
  readonly tokenFile?: string | undefined;
  readonly tokenCommand?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  readonly owner?: string | undefined;
}

export const settingNames = [
  'address',
  'ca',
  'token',
  'tokenFile',
  'tokenCommand',
  'cert',
  'key',
  'serverName',
  'owner',
] as const satisfies readonly (keyof SettingsLayer)[];

/** Of a layer that may hold more, the settings that it gives. */
export function givenSettings(layer: SettingsLayer): (readonly [keyof SettingsLayer, string])[] {
  return settingNames.flatMap((name) => {
    const value = layer[name];
    return value === undefined ? [] : [[name, value] as const];
  });
}

/** `GRANTTY_TOKEN_FILE` for `tokenFile`. An empty variable counts as none. */
export function variableName(setting: string): string {
  return `GRANTTY_${setting.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

export function environmentLayer(env: NodeJS.ProcessEnv): SettingsLayer {
  return Object.fromEntries(
    settingNames.map((name) => [name, env[variableName(name)] || undefined]),
  );
}

const MAX_PORT = 65_535;

/** Earlier layers win, setting by setting; the three ways to give a token are one setting. */
export function resolveSettings(layers: readonly SettingsLayer[]): Settings {
  const address = first(layers, 'address');
  if (address === undefined) {
    throw new UsageError(
      'no server is named: give --address HOST:PORT, set GRANTTY_ADDRESS, or source the file that "ctx serve --dev" prints',
    );
  }
  if (!/^(\[[0-9A-Fa-f:.]+\]|[^:/[\]]+):\d{1,5}$/.test(address)) {
    throw new UsageError(`"${address}" is not an address: write HOST:PORT, or [IPV6]:PORT`);
  }
  const port = Number(address.slice(address.lastIndexOf(':') + 1));
  if (port < 1 || port > MAX_PORT) {
    throw new UsageError(`"${address}" is not an address: a port is from 1 to ${MAX_PORT}`);
  }
  const cert = first(layers, 'cert');
  const key = first(layers, 'key');
  if ((cert === undefined) !== (key === undefined)) {
    throw new UsageError('a client certificate needs its key: give both --cert and --key');
  }
  return compact({
    address,
    token: resolveToken(layers),
    ca: first(layers, 'ca'),
    cert,
    key,
    serverName: first(layers, 'serverName'),
    owner: first(layers, 'owner'),
  });
}

/** Within one layer a literal token is taken before a file, a file before a command. */
export function resolveToken(layers: readonly SettingsLayer[]): TokenSource {
  for (const { token, tokenFile, tokenCommand } of layers) {
    if (token !== undefined) return { kind: 'literal', token };
    if (tokenFile !== undefined) return { kind: 'file', path: tokenFile };
    if (tokenCommand !== undefined) return { kind: 'command', command: tokenCommand };
  }
  throw new UsageError(
    'there is no token: give --token-file FILE, or set GRANTTY_TOKEN_FILE, GRANTTY_TOKEN or GRANTTY_TOKEN_COMMAND',
  );
}

function first(layers: readonly SettingsLayer[], name: keyof SettingsLayer): string | undefined {
  return layers.find((layer) => layer[name] !== undefined)?.[name];
}

function compact<T extends object>(
  settings: {
    [K in keyof T]: T[K] | undefined;
  },
): T {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined),
  ) as T;
}
