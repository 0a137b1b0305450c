/** Names of environment variables: which are ours, which are free, which need a grant that says so. */

/** Unit: bytes. */
const MAX_ENV_NAME_BYTES = 256;

/** POSIX.1-2017, 8.1: letters, digits and underscore, no digit first. */
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/**
 * Variables that no request may set, whatever its grant says: they tell the child who and where it
 * is, and CTX_INSTANCE is how its processes are found again.
 */
export const fixedEnvNames: readonly string[] = [
  'USER',
  'LOGNAME',
  'SHELL',
  'CTX_AGENT',
  'CTX_SESSION',
  'CTX_TERMINAL',
  'CTX_INSTANCE',
];

/** Variables that any request may set. */
export const freeEnvNames: readonly string[] = ['LC_*', 'LANG', 'TZ', 'COLORTERM', 'TERM'];

/**
 * Variables by which one program loads code or finds programs in another's name. Only a grant that
 * spells such a name out lets it be set; no `prefix*`, not even `*`, covers it.
 */
export const protectedEnvNames: readonly string[] = [
  'LD_*',
  'DYLD_*',
  'PATH',
  'HOME',
  'BASH_ENV',
  'ENV',
  'NODE_OPTIONS',
  'PYTHON*',
  'PERL5*',
  'GIT_*',
  'JAVA_TOOL_OPTIONS',
];

export function isEnvName(text: string): boolean {
  return text.length <= MAX_ENV_NAME_BYTES && ENV_NAME.test(text);
}

/** A name, `prefix*`, or `*`, as `env_allow` of a grant may hold. */
export function isEnvPattern(text: string): boolean {
  return text === '*' || isEnvName(text.endsWith('*') ? text.slice(0, -1) : text);
}

export function isFixedEnvName(name: string): boolean {
  return matchesAny(fixedEnvNames, name);
}

export function isFreeEnvName(name: string): boolean {
  return matchesAny(freeEnvNames, name);
}

export function isProtectedEnvName(name: string): boolean {
  return matchesAny(protectedEnvNames, name);
}

/** Whether a request may set the variable under a grant with this `env_allow`. */
export function maySetEnv(name: string, envAllow: readonly string[]): boolean {
  if (!isEnvName(name) || isFixedEnvName(name)) return false;
  if (isFreeEnvName(name) || envAllow.includes(name)) return true;
  return !isProtectedEnvName(name) && matchesAny(envAllow, name);
}

/** Whether a list that holds `pattern` lets no variable be set that `envAllow` does not. */
export function isWithinEnvAllow(pattern: string, envAllow: readonly string[]): boolean {
  if (envAllow.includes(pattern)) return true;
  if (!pattern.endsWith('*')) return maySetEnv(pattern, envAllow);
  const prefix = pattern.slice(0, -1);
  return [...envAllow, ...freeEnvNames].some(
    (outer) => outer.endsWith('*') && prefix.startsWith(outer.slice(0, -1)),
  );
}

function matchesAny(patterns: readonly string[], name: string): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}
