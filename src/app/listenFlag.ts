/** The flag `--listen` of serve and supervise. */
import { ConfigurationError } from './configurationError.js';
import { type ListenAddress, parseListen } from './listen.js';

/** Undefined when it was not given. @throws ConfigurationError */
export function listenFlag(text: string | undefined): ListenAddress | undefined {
  if (text === undefined) return undefined;
  const address = parseListen(text);
  if (address) return address;
  throw new ConfigurationError(
    `--listen "${text}": write HOST:PORT or [IPV6]:PORT, like 127.0.0.1:7443; a port is at most 65535`,
  );
}
