/** The version of the package. */
import { readFileSync } from 'node:fs';

/** From package.json, two folders above this file in src as in dist. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) {
    return String(manifest.version);
  }
  throw new TypeError('package.json has no version');
}
