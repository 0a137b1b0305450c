/** The environment of a child: ours and what its request may add, and nothing of the server's own. */
import { isEnvName, isFixedEnvName } from '../core/envNames.js';
import { fieldInvalid } from '../core/errors.js';
import { MAX_ENV_BYTES, MAX_ENV_COUNT } from '../core/limits.js';
import type { Account } from './owner.js';

/** Where commands are found. Root alone has the sbin directories. */
const USER_PATH = '/usr/local/bin:/usr/bin:/bin';
const ROOT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface EnvironmentSpec {
  readonly account: Account;
  readonly agent: string;
  readonly session: string;
  readonly terminal: string;
  /** Random; carried by every process of the instance, and how those that slip away are found. */
  readonly instance: string;
  /** Variables that the request may set: authority over them has been decided. */
  readonly request: Readonly<Record<string, string>>;
}

/** Complete: what is not in the answer the child does not have. @throws FIELD_INVALID */
export function childEnvironment(spec: EnvironmentSpec): Record<string, string> {
  checkRequest(spec.request);
  const { uid, name, home, shell } = spec.account;
  return {
    PATH: uid === 0 ? ROOT_PATH : USER_PATH,
    HOME: home,
    USER: name,
    LOGNAME: name,
    SHELL: shell,
    LANG: 'C.UTF-8',
    TERM: 'xterm-256color',
    CTX_AGENT: spec.agent,
    CTX_SESSION: spec.session,
    CTX_TERMINAL: spec.terminal,
    CTX_INSTANCE: spec.instance,
    ...spec.request,
  };
}

function checkRequest(request: Readonly<Record<string, string>>): void {
  const entries = Object.entries(request);
  if (entries.length > MAX_ENV_COUNT) {
    throw fieldInvalid('env', `holds more than ${MAX_ENV_COUNT} variables`);
  }
  let bytes = 0;
  for (const [name, value] of entries) {
    if (!isEnvName(name)) {
      throw fieldInvalid('env', 'a name is letters, digits and underscore, no digit first');
    }
    if (isFixedEnvName(name)) throw fieldInvalid(`env.${name}`, 'is set by the server');
    if (value.includes('\0')) throw fieldInvalid(`env.${name}`, 'holds a NUL byte');
    bytes += name.length + Buffer.byteLength(value) + 2;
  }
  if (bytes > MAX_ENV_BYTES) throw fieldInvalid('env', `holds more than ${MAX_ENV_BYTES} bytes`);
}
