import { existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { describe, expect, it, jest } from '@jest/globals';
import { foregroundGroup, foregroundState, signalForeground } from '../../src/pty/foreground.js';
import { readProcess } from '../../src/pty/processTable.js';
import { eventually, openScript, openTerminal } from './openTerminal.js';

const allow = () => undefined;
const LISTENS_AND_COMPUTES =
  'process.stdin.resume(); new (require("node:worker_threads").Worker)("for (;;);", { eval: true }).on("online", ready)';
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

  it('is refused a signal in clear words where it runs as another user', async () => {
    const { marks, seen } = await shellRunning('sh -c "echo re""ady; exec sleep 60"');
    await seen('ready\r\n');
    const kill = jest.spyOn(process, 'kill').mockImplementation(() => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
    });
    try {
      await expect(signalForeground(marks, 'SIGINT')).rejects.toMatchObject({
        reason: 'FIELD_INVALID',
        violations: [{ field: 'signal' }],
      });
    } finally {
      kill.mockRestore();
    }
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
    for (let count = 0; count < 10; count += 1) {
      await setTimeout(10);
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

  it('is yes for a pipeline whose first program reads and whose last waits for that', async () => {
    await answers(openScript('cat | sort'), 'yes');
  });

  it('is no when one of a pipeline goes on by itself', async () => {
    await answers(openScript('cat | sleep 60'), 'no');
  });

  it('is yes for a script whose child reads, no while its child works', async () => {
    await answers(openScript('sh -c "cat; true"; true'), 'yes');
    await answers(openScript('sh -c "sleep 60; true"; true'), 'no');
  });

  it('is yes beside a process that has ended and was not collected', async () => {
    const terminal = openScript('sh -c "exit 0" & sleep 0.1; exec cat');
    await answers(terminal, 'yes');
  });

  it('is no while the only reader is stopped', async () => {
    const terminal = openScript('echo $$; exec cat');
    await terminal.seen('\r\n');
    await answers(terminal, 'yes');
    process.kill(terminal.marks.pid, 'SIGSTOP');
    await answers(terminal, 'no');
    process.kill(terminal.marks.pid, 'SIGCONT');
    await answers(terminal, 'yes');
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
    ['select of nothing, which is a sleep', 'select.select([], [], [], 60)', 'no'],
    [
      'a second thread that sleeps',
      'threading.Thread(target=time.sleep, args=(60,)).start(); sys.stdin.read()',
      'no',
    ],
    [
      'a second thread that sleeps by select',
      'threading.Thread(target=select.select, args=([], [], [], 60)).start(); os.read(0, 1)',
      'no',
    ],
    [
      'a second thread that sleeps by an empty epoll',
      'threading.Thread(target=select.epoll().poll).start(); os.read(0, 1)',
      'no',
    ],
    [
      'a second thread that computes',
      'threading.Thread(target=exec, args=("while True: pass",)).start(); os.read(0, 1)',
      'no',
    ],
    [
      'a second thread that reads too',
      'threading.Thread(target=os.read, args=(0, 1)).start(); os.read(0, 1)',
      'yes',
    ],
    [
      'a thread that reads while the first one waits for it',
      't = threading.Thread(target=os.read, args=(0, 1)); t.start(); t.join()',
      'yes',
    ],
    [
      'a thread that reads while the first one waits for it with a time-out',
      't = threading.Thread(target=os.read, args=(0, 1)); t.start(); t.join(60)',
      'yes',
    ],
    [
      'a second thread that waits for a pipe',
      'threading.Thread(target=os.read, args=(os.pipe()[0], 1)).start(); os.read(0, 1)',
      'yes',
    ],
    [
      'a first thread that polls a socket while another reads',
      's = socket.socketpair(); threading.Thread(target=os.read, args=(0, 1)).start(); s[0].recv(1)',
      'yes',
    ],
    [
      'threads none of which reads',
      'threading.Thread(target=os.read, args=(os.pipe()[0], 1)).start(); os.read(os.pipe()[0], 1)',
      'no',
    ],
  ] as const)('knows %s', async (_name, code, expected) => {
    const imports = 'import os, select, socket, sys, threading, time';
    const ready = 'print("ready", flush=True)';
    const terminal = openTerminal(['/usr/bin/python3', '-c', `${imports}; ${ready}; ${code}`]);
    await terminal.seen('ready');
    await answers(terminal, expected);
  });

  it.each([
    ['that listens to the terminal', 'process.stdin.resume(); ready()', 'yes'],
    ['that has only a timer', 'setInterval(() => {}, 60_000); ready()', 'no'],
    ['that listens and computes', 'process.stdin.resume(); ready(); for (;;);', 'no'],
    ['that listens while a worker computes', LISTENS_AND_COMPUTES, 'no'],
  ] as const)('knows a program with a pool of idle threads %s', async (_name, code, expected) => {
    const ready = 'const ready = () => require("node:fs").writeSync(1, "ready")';
    const terminal = openTerminal([process.execPath, '-e', `${ready}; ${code}`]);
    await terminal.seen('ready');
    await answers(terminal, expected);
  });
});
