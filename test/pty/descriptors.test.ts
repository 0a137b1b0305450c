import { type StdioOptions, spawnSync } from 'node:child_process';
import { closeSync, openSync, readdirSync, readlinkSync, statSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { childLaunch } from '../../src/pty/launch.js';
import { forkPty } from '../../src/pty/nativePty.js';
import { readProcess } from '../../src/pty/processTable.js';
import { eventually, openScript, openTerminal } from './openTerminal.js';

const BUILT = fileURLToPath(new URL('../../dist/pty/inheritedDescriptors.js', import.meta.url));

/** What each descriptor of a process is. */
function descriptors(pid: number | 'self'): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((descriptor) => {
    try {
      return [`${descriptor} ${readlinkSync(`/proc/${pid}/fd/${descriptor}`)}`];
    } catch {
      return [];
    }
  });
}

function masters(): string[] {
  return descriptors('self').filter((entry) => entry.includes('ptmx'));
}

describe('descriptors', () => {
  it('of a child are its own terminal three times and nothing of this process', async () => {
    await using file = await open('/etc/hostname', 'r');
    const server = createServer().listen(0, '127.0.0.1');
    expect(file.fd).toBeGreaterThan(2);
    const others = Array.from({ length: 5 }, () => openScript('echo ready; read line'));
    // Between the fork and the exec a child has what its parent has.
    for (const other of others) await other.seen('ready');
    const { pty, seen } = openScript('tty; echo ready; read line');
    const [tty] = (await seen('ready')).split('\r\n');
    expect(descriptors(pty.pid).sort()).toEqual([`0 ${tty}`, `1 ${tty}`, `2 ${tty}`]);
    expect(statSync(tty ?? '').rdev).toBe(pty.ttyDevice);
    for (const other of others) expect(descriptors(other.pty.pid)).toHaveLength(3);
    server.close();
  });

  it('of a child are no master of another terminal, whatever numbers are free', async () => {
    const files = await Promise.all(Array.from({ length: 40 }, () => open('/etc/hostname', 'r')));
    const others = Array.from({ length: 5 }, () => openScript('echo ready; read line'));
    // Between the fork and the exec a child has what its parent has.
    for (const other of others) await other.seen('ready');
    for (const file of files) await file.close();
    expect(masters()).toHaveLength(others.length);
    for (let count = 0; count < 5; count += 1) {
      const { pty, seen } = openScript('echo ready; read line');
      await seen('ready');
      expect(descriptors(pty.pid)).toHaveLength(3);
    }
  });

  it('of a child are no master already when it is forked', async () => {
    const files = Array.from({ length: 40 }, () => openSync('/etc/hostname', 'r'));
    const other = openTerminal(['/bin/cat']);
    for (const file of files) closeSync(file);
    expect(masters()).toHaveLength(1);
    let exited: () => void = () => {};
    const exit = new Promise<void>((resolve) => {
      exited = resolve;
    });
    const { master, pid } = forkPty({
      argv: ['/bin/sleep', '60'],
      env: [],
      cwd: '/',
      size: { cols: 80, rows: 24 },
      onExit: () => exited(),
    });
    await eventually(() => readProcess(pid)?.comm === 'sleep');
    expect(descriptors(pid).filter((entry) => entry.includes('ptmx'))).toEqual([]);
    process.kill(pid, 'SIGKILL');
    await exit;
    closeSync(master);
    other.pty.close();
  });

  it('of a child are no master while files are opened and closed all the time', async () => {
    let busy = true;
    const churn = Array.from({ length: 8 }, async () => {
      while (busy) await readFile('/etc/hostname');
    });
    const terminals = [];
    for (let count = 0; count < 40; count += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      terminals.push(openScript('echo ready; read line'));
    }
    for (const { pty, seen } of terminals) {
      await seen('ready');
      expect(descriptors(pty.pid)).toHaveLength(3);
    }
    busy = false;
    await Promise.all(churn);
  });

  it('that a child inherits nevertheless are closed before the command runs', () => {
    const { argv, env } = childLaunch(
      { argv: ['/bin/ls', '/proc/self/fd'], env: { PATH: '/bin', BASH_ENV: '/no/such/file' } },
      undefined,
    );
    const [file = '', ...args] = argv;
    const stdio: StdioOptions = [
      ...Array<'pipe'>(3).fill('pipe'),
      'pipe',
      ...Array(40).fill('pipe'),
    ];
    const { stdout, stderr, status } = spawnSync(file, args, { env: { ...env }, stdio });
    expect(stderr.toString()).toBe('');
    // The third is the directory that ls reads.
    expect(stdout.toString()).toBe('0\n1\n2\n3\n');
    expect(status).toBe(0);
  });

  it('that a process inherits far up are closed when it asks for that, its own and files are not', () => {
    const script = `
      import { readdirSync } from 'node:fs';
      import { closeInherited } from '${BUILT}';
      const open = () => readdirSync('/proc/self/fd').map(Number);
      const before = open();
      closeInherited();
      const after = open();
      console.log(JSON.stringify({ before, gone: before.filter((fd) => !after.includes(fd)) }));`;
    const { stdout, stderr } = spawnSync('/bin/bash', [
      ...['-c', 'exec "$@" 200>&1 201</dev/null 202</etc/hostname', 'bash', process.execPath],
      ...['--input-type=module', '-e', script],
    ]);
    expect(stderr.toString()).toBe('');
    const { before, gone } = JSON.parse(stdout.toString());
    expect(before).toEqual(expect.arrayContaining([200, 201, 202]));
    // What else this process was given may go too.
    expect(gone.filter((fd: number) => [200, 201, 202].includes(fd))).toEqual([200, 201]);
    expect(Math.min(...gone)).toBeGreaterThan(2);
  });

  it('of this process are as many after 500 short terminals as before', async () => {
    const { pty } = openTerminal(['/usr/bin/true']);
    await pty.exit;
    pty.close();
    expect(masters()).toEqual([]);
    const before = descriptors('self').length;
    for (let batch = 0; batch < 25; batch += 1) {
      const terminals = Array.from({ length: 20 }, () => openTerminal(['/usr/bin/true']));
      await Promise.all(terminals.map((terminal) => terminal.pty.exit));
      for (const terminal of terminals) terminal.pty.close();
    }
    expect(masters()).toEqual([]);
    expect(descriptors('self').length).toBe(before);
  }, 120_000);

  it('stay as many when a terminal cannot be opened', () => {
    const before = descriptors('self').length;
    expect(() => openTerminal(['/usr/bin/true'], { cwd: '/no/such/directory' })).toThrow(
      expect.objectContaining({ reason: 'CWD_INVALID' }),
    );
    expect(() => openTerminal(['/usr/bin/true'], { cwd: '/proc/self' })).toThrow(
      expect.objectContaining({ reason: 'CWD_INVALID' }),
    );
    expect(descriptors('self').length).toBe(before);
  });
});
