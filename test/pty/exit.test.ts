import { describe, expect, it } from '@jest/globals';
import { readProcess, scanProcesses } from '../../src/pty/processTable.js';
import { eventually, meanwhile, openScript, openTerminal } from './openTerminal.js';

const allow = () => undefined;

describe('the end of a terminal', () => {
  it.each([0, 1, 3, 127, 255])('has exit code %i', async (code) => {
    const { pty } = openScript(`exit ${code}`);
    expect(await pty.exit).toEqual({ exitCode: code, drained: true });
  });

  it.each([
    ['SIGHUP', 129],
    ['SIGKILL', 137],
    ['SIGSEGV', 139],
    ['SIGABRT', 134],
    ['SIGTERM', 143],
  ])('by %s has its name and 128 more than its number', async (signal, exitCode) => {
    const { pty } = openScript(`kill -${signal.slice(3)} $$`);
    expect(await pty.exit).toEqual({ exitCode, signal, drained: true });
  });

  it('is told with the last output before it', async () => {
    const { pty, output } = openScript('echo pending; exit 3');
    let outputAtExit = '';
    const exit = pty.exit.then((end) => {
      outputAtExit = output().toString();
      return end;
    });
    expect(await exit).toMatchObject({ exitCode: 3 });
    expect(outputAtExit).toBe('pending\r\n');
    await meanwhile();
    expect(output().toString()).toBe(outputAtExit);
  });

  it('refuses input and resizes afterwards', async () => {
    const { pty } = openTerminal(['/usr/bin/true']);
    await pty.exit;
    const refused = { reason: 'TERMINAL_EXITED' };
    await expect(pty.send(Buffer.from('x'), allow)).rejects.toMatchObject(refused);
    expect(() => pty.resize({ cols: 90, rows: 20 })).toThrow(expect.objectContaining(refused));
    pty.close();
    await expect(pty.send(Buffer.from('x'), allow)).rejects.toMatchObject(refused);
    expect(() => pty.resize({ cols: 90, rows: 20 })).toThrow(expect.objectContaining(refused));
    pty.pauseOutput();
    pty.resumeOutput();
    pty.dropRefused();
    pty.close();
  });

  it('rejects input that the process did not take', async () => {
    const { pty, seen } = openScript(
      'stty raw -echo; trap "exit 4" USR1; sleep 60 & echo ready; while :; do wait; done',
    );
    await seen('ready');
    const sent = [pty.send(Buffer.alloc(60_000), allow), pty.send(Buffer.from('x'), allow)];
    process.kill(pty.pid, 'SIGUSR1');
    const ends = await Promise.allSettled(sent);
    for (const end of ends) {
      expect(end).toMatchObject({ status: 'rejected', reason: { reason: 'TERMINAL_EXITED' } });
    }
    expect((await pty.exit).exitCode).toBe(4);
  });

  it('hangs up when it is closed before', async () => {
    const { pty, seen } = openScript('echo ready; exec sleep 60');
    await seen('ready');
    pty.close();
    expect(await pty.exit).toEqual({ exitCode: 129, signal: 'SIGHUP', drained: false });
  });

  it('leaves no zombie, after 200 terminals', async () => {
    for (let batch = 0; batch < 10; batch += 1) {
      const terminals = Array.from({ length: 20 }, () => openTerminal(['/usr/bin/true']));
      await Promise.all(terminals.map(({ pty }) => pty.exit));
      for (const { pty } of terminals) {
        pty.close();
        expect(readProcess(pty.pid)?.parent).not.toBe(process.pid);
      }
    }
    const { processes } = await scanProcesses();
    expect(processes.filter(({ parent }) => parent === process.pid)).toEqual([]);
  });
});

describe('the size of a terminal', () => {
  it('is what it was opened with, and changes with one SIGWINCH at the new size', async () => {
    const { pty, seen, output } = openScript(
      'trap "stty size" WINCH; stty size; echo ready; while :; do sleep 0.02; done',
      { size: { cols: 101, rows: 31 } },
    );
    expect(await seen('ready')).toContain('31 101\r\n');
    pty.resize({ cols: 120, rows: 40 });
    await seen('40 120\r\n');
    pty.resize({ cols: 120, rows: 40 });
    pty.resize({ cols: 121, rows: 41 });
    await seen('41 121\r\n');
    await eventually(() => output().toString().endsWith('41 121\r\n'));
    expect(
      output()
        .toString()
        .match(/40 120/g),
    ).toHaveLength(1);
  });
});
