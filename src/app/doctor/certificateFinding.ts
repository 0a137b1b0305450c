/** Whether a certificate in a file holds, and for how long. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { counted } from '../../core/counted.js';
import { errorCode } from '../../core/errors.js';
import { fileFailure } from '../../core/fileFailure.js';
import { type Finding, fail, ok, warn } from './finding.js';

const DAY_MS = 24 * 3600_000;
/** Days of validity below which somebody should act. */
const RENEWAL_DAYS = 7;

/** `keyPath` as well: whether the key is the certificate's. Of a bundle, the first one counts. */
export async function certificateFinding(
  check: string,
  path: string,
  keyPath: string | undefined,
  now: number,
): Promise<Finding> {
  try {
    const certificate = new X509Certificate(await readFile(path));
    if (keyPath !== undefined) {
      const key = createPrivateKey(await readFile(keyPath));
      if (!certificate.checkPrivateKey(key)) {
        return fail(check, `${keyPath} is not the key of ${path}`, 'give the pair that was issued');
      }
    }
    return validity(check, path, certificate, now);
  } catch (error) {
    // What OpenSSL says of a file that is none of its own is no help to anybody.
    const isForeign = errorCode(error)?.startsWith('ERR_OSSL') === true;
    const files = keyPath === undefined ? path : `${path} and ${keyPath}`;
    const why = isForeign ? 'no PEM of a certificate and its key' : fileFailure(error);
    return fail(check, `${files}: ${why}`, 'give PEM files that this user can read');
  }
}

function validity(
  check: string,
  path: string,
  { validFrom, validTo }: X509Certificate,
  now: number,
): Finding {
  const end = Date.parse(validTo);
  const days = Math.floor((end - now) / DAY_MS);
  const until = `until ${new Date(end).toISOString()}`;
  if (now < Date.parse(validFrom)) {
    return fail(check, `${path} is not valid yet`, 'look at the clock of this host');
  }
  if (now >= end) return fail(check, `${path} was valid ${until}`, 'renew it');
  return days < RENEWAL_DAYS
    ? warn(
        check,
        `${path} is valid ${until}, ${counted(days, 'day')}`,
        'renew it, then SIGHUP to the server',
      )
    : ok(check, `${path} is valid ${until}`);
}
