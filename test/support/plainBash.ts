/** bash as tests have it: without the start-up files of whoever runs them, which may take seconds. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const dir = mkdtempSync(join(tmpdir(), 'plain-bash-'));
process.once('exit', () => rmSync(dir, { recursive: true, force: true }));

/** Path of a program that becomes bash. */
export const plainBash = join(dir, 'bash');
writeFileSync(plainBash, `#!/bin/sh\nHOME=${dir} exec /bin/bash "$@"\n`, { mode: 0o755 });
