/** What proof of possession is asked of tokens: from the configuration, with what is refused. */
import type { ProofMode } from '../auth/proof.js';
import type { Configuration } from './config.js';
import { problemOf } from './configurationError.js';

/**
 * Beyond loopback a token alone is not enough, unless the operator says so.
 * @throws ConfigurationError
 */
export function chooseProof(
  { pop, tls }: Pick<Configuration, 'pop' | 'tls'>,
  isLocal: boolean,
): ProofMode {
  const mode = pop ?? (isLocal ? 'if-present' : 'required');
  if (mode !== 'required' || tls.client_ca !== undefined) return mode;
  throw problemOf(
    'pop',
    'tokens must be bound to client certificates, and tls.client_ca is not there to ask for any',
    'give it, or accept bearer tokens with pop: if-present',
  );
}
