import { existsSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { foregroundGroup, foregroundState, signalForeground } from '../../src/pty/foreground.js';
import { readProcess } from '../../src/pty/processTable.js';
import { eventually, openScript, openTerminal } from './openTerminal.js';

const allow = () => undefined;
const hasPython = existsSync('/usr/bin/python3');
const withPython = hasPython ? it : it.skip;
if (!hasPython) console.warn('skipped: select, poll and epoll are tried with /usr/bin/python3');

/** An interactive shell that has run `line`. */
async function shellRunning(line: string) {
  const terminal = openTerminal(['/bin/bash', '--norc', '-i']);
  await terminal.pty.send(Buffer.from(`${line}\n`), allow);
  return terminal;
}

describe('the foreground of a terminal', () => {
  it('gets a signal, and the shell lives', async () => {
    const { pty, marks, seen } = await shellRunning('sh -c "echo re""ady; exec sleep 60"');
    await seen('ready\r\n');
    const group = await foregroundGroup(marks);
    expect(group).toBeGreaterThan(0);
    expect(group).not.toBe(marks.pid);
    expect(await signalForeground(marks, 'SIGINT')).toBe(group);
    await pty.send(Buffer.from('echo "code $?"\n'), allow);
    await seen('code 130\r\n');
  });

  it('gets a signal also when its first process has ended', async () => {
    const { marks, seen } = await shellRunning(
      'true | sh -c "echo re""ady; exec sleep 60"; echo "code $?"',
    );
    await seen('ready\r\n');
    const group = await foregroundGroup(marks);
    expect(group).toBeGreaterThan(0);
    await eventually(() => readProcess(group ?? 0) === undefined);
    expect(await signalForeground(marks, 'SIGTERM')).toBe(group);
    await seen('code 143');
  });

  it('gets nothing when leave is refused at the last moment', async () => {
    const { marks, seen } = openScript('echo ready; exec sleep 60');
    await seen('ready');
    const refused = new Error('refused');
    const signalled = signalForeground(marks, 'SIGKILL', () => {
      throw refused;
    });
    await expect(signalled).rejects.toBe(refused);
    expect(readProcess(marks.pid)?.startTime).toBe(marks.startTime);
  });

  it('is none of a process that has only the number, or another terminal', async () => {
    const { marks, seen } = openScript('echo ready; exec sleep 60');
    await seen('ready');
    const others = [
      { ...marks, startTime: marks.startTime + 1 },
      { ...marks, ttyDevice: marks.ttyDevice + 1 },
    ];
    for (const other of others) {
      expect(await signalForeground(other, 'SIGKILL')).toBeUndefined();
      expect(await foregroundState(other)).toEqual({
        shellInForeground: false,
        waitingForInput: 'unknown',
      });
    }
    expect(await foregroundGroup({ ...marks, sessionId: marks.sessionId + 1 })).toBeUndefined();
    expect(readProcess(marks.pid)?.startTime).toBe(marks.startTime);
  });

  it('is none after the exit', async () => {
    const { pty, marks } = openTerminal(['/usr/bin/true']);
    await pty.exit;
    expect(await signalForeground(marks, 'SIGINT')).toBeUndefined();
    expect(await foregroundGroup(marks)).toBeUndefined();
  });
});

describe('the probe for input', () => {
  async function answers(
    { marks }: ReturnType<typeof openTerminal>,
    waitingForInput: 'yes' | 'no' | 'unknown',
  ) {
    await eventually(
      async () => (await foregroundState(marks)).waitingForInput === waitingForInput,
    );
    // It stays so, and was no passing state.
    for (let count = 0; count < 5; count += 1) {
      expect((await foregroundState(marks)).waitingForInput).toBe(waitingForInput);
    }
    return foregroundState(marks);
  }

  /** Name of the first process of the foreground. */
  async function runs({ marks }: ReturnType<typeof openTerminal>): Promise<string | undefined> {
    return readProcess((await foregroundGroup(marks)) ?? 0)?.comm;
  }

  it('is yes for a shell at its prompt, no while it runs a program, yes when that reads', async () => {
    const terminal = openTerminal(['/bin/bash', '--norc', '-i']);
    const { pty, marks } = terminal;
    expect(await answers(terminal, 'yes')).toMatchObject({
      processGroup: marks.pid,
      shellInForeground: true,
    });
    await pty.send(Buffer.from('sleep 60\n'), allow);
    await eventually(async () => (await runs(terminal)) === 'sleep');
    expect(await answers(terminal, 'no')).toMatchObject({ shellInForeground: false });
    await signalForeground(marks, 'SIGINT');
    await answers(terminal, 'yes');
    await pty.send(Buffer.from('cat\n'), allow);
    await eventually(async () => (await runs(terminal)) === 'cat');
    expect(await answers(terminal, 'yes')).toMatchObject({ shellInForeground: false });
  });

  it('is yes for read by way of /dev/tty', async () => {
    await answers(openScript('exec cat /dev/tty'), 'yes');
  });

  it('is no when one of a pipeline waits for something else', async () => {
    await answers(openScript('cat | sleep 60'), 'no');
  });

  it('is no for a read from what is no terminal', async () => {
    await answers(openScript('sleep 60 | exec cat'), 'no');
  });

  withPython.each([
    ['select', 'select.select([0], [], [])', 'yes'],
    ['select of a pipe', 'select.select([os.pipe()[0]], [], [])', 'no'],
    ['select for output only', 'select.select([], [os.pipe()[0]], [])', 'no'],
    ['poll', 'p = select.poll(); p.register(0, select.POLLIN); p.poll()', 'yes'],
    [
      'poll of a pipe',
      'p = select.poll(); p.register(os.pipe()[0], select.POLLIN); p.poll()',
      'no',
    ],
    ['poll for errors only', 'p = select.poll(); p.register(0, 0); p.poll()', 'no'],
    ['epoll', 'p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()', 'yes'],
    ['epoll of a pipe', 'p = select.epoll(); p.register(os.pipe()[0], 1); p.poll()', 'no'],
    ['a busy loop', 'exec("while True: pass")', 'no'],
    [
      'a second thread that sleeps',
      'threading.Thread(target=time.sleep, args=(60,)).start(); sys.stdin.read()',
      'no',
    ],
    [
      'a second thread that reads too',
      'threading.Thread(target=os.read, args=(0, 1)).start(); os.read(0, 1)',
      'yes',
    ],
  ] as const)('knows %s', async (_name, code, expected) => {
    const imports = 'import os, select, sys, threading, time';
    await answers(openTerminal(['/usr/bin/python3', '-c', `${imports}; ${code}`]), expected);
  });
});
