import { access, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configuration } from '../../src/app/config.js';
import { loggerOf } from '../../src/app/logger.js';
import { openSupervisor } from '../../src/app/supervisorChoice.js';
import { openStateDir } from '../../src/store/stateDir.js';

describe('a supervisor that somebody else starts', () => {
  it('is waited for, and where none answers that is said and none is started', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'grantty-external-'));
    try {
      const opening = openSupervisor({
        kind: 'external',
        stateDir: await openStateDir(dir),
        isolation: { mode: 'by-uid', minUid: 1000 },
        config: configuration.parse({
          audience: 'a',
          tls: { cert: 'c', key: 'k' },
          issuers: [{ issuer: 'i', jwks_file: 'f' }],
        }),
        version: 'test',
        logger: loggerOf({ log: { level: 'fatal', sync: 'off' } }),
        locator: ({ id }) => id,
        superviseArguments: ['would', 'fail', 'if', 'started'],
        onChange: () => {},
        hurry: new AbortController().signal,
        patienceMs: 100,
      });
      await expect(opening).rejects.toThrow(
        /no supervisor answered at \S+\/supervisor\/socket within 0.1 s.*start it \("ctx would fail if started"/s,
      );
      await expect(access(join(dir, 'supervisor.log'))).rejects.toThrow('ENOENT');
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});
