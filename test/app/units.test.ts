/** The unit files for systemd, as far as they can be looked at without it running. */
import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onPath, skipAloud } from '../support/skipAloud.js';
import { type UnitName, unitCommand, unitPath, unitSetting } from '../support/units.js';

const run = promisify(execFile);

const units: readonly UnitName[] = ['grantty-server.service', 'grantty-supervisor.service'];

/** Above it, systemd itself says a service is more exposed than it should be: ten times the score. */
const MAX_EXPOSURE = '20';

describe('the units for systemd', () => {
  it('are sound', async () => {
    if (!onPath('systemd-analyze')) return skipAloud('systemd-analyze is not installed');
    const dir = await mkdtemp(join(tmpdir(), 'grantty-units-'));
    try {
      // The program is not where it will be installed, and verify looks for it.
      for (const unit of units) {
        const text = await readFile(unitPath(unit), 'utf8');
        await writeFile(join(dir, unit), text.replace('/usr/bin/ctx', process.execPath));
      }
      const { stdout, stderr } = await run('systemd-analyze', [
        'verify',
        ...units.map((unit) => join(dir, unit)),
      ]);
      expect(stdout + stderr).toBe('');
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  it('leave the server little to reach', async () => {
    if (!onPath('systemd-analyze')) return skipAloud('systemd-analyze is not installed');
    const dir = await mkdtemp(join(tmpdir(), 'grantty-units-'));
    try {
      const unit = join(dir, 'grantty-server.service');
      await copyFile(unitPath('grantty-server.service'), unit);
      // Fails, by its exit code, above the threshold.
      await run('systemd-analyze', [
        'security',
        '--offline=true',
        `--threshold=${MAX_EXPOSURE}`,
        unit,
      ]);
    } finally {
      await rm(dir, { recursive: true });
    }
  });

  it('run commands that the program knows, the server without a supervisor of its own', async () => {
    expect(await unitCommand('grantty-server.service')).toEqual(
      '/usr/bin/ctx serve --config /etc/grantty/config.yaml --supervisor external'.split(' '),
    );
    expect(await unitCommand('grantty-supervisor.service')).toEqual(
      '/usr/bin/ctx supervise --config /etc/grantty/config.yaml'.split(' '),
    );
  });

  it('end a server without its terminals, and a supervisor with them', async () => {
    // The supervisor is no process of the server's unit, and is told alone: it ends terminals itself.
    expect(await unitSetting('grantty-supervisor.service', 'KillMode')).toEqual(['mixed']);
    for (const binding of ['Requires', 'BindsTo', 'PartOf', 'PropagatesStopTo']) {
      expect(await unitSetting('grantty-server.service', binding)).toEqual([]);
      expect(await unitSetting('grantty-supervisor.service', binding)).toEqual([]);
    }
    // What every terminal would inherit.
    for (const setting of ['UMask', 'OOMScoreAdjust', 'ProtectHome', 'ProtectSystem', 'PrivateTmp'])
      expect(await unitSetting('grantty-supervisor.service', setting)).toEqual([]);
  });
});
