import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { readProcess, scanProcesses } from '../../src/pty/processTable.js';
import { endTree, findTree, signalProcesses } from '../../src/pty/processTree.js';
import { skipAloud } from '../support/skipAloud.js';
import { eventually, openScript, openTerminal } from './openTerminal.js';

const KILL = { signals: ['SIGKILL'], graceMs: 5_000 } as const;
const STOP = { signals: ['SIGTERM', 'SIGHUP'], graceMs: 5_000 } as const;

/** The pids that a script printed as `name=pid`. */
function pidsIn(text: string): Record<string, number> {
  const found = [...text.matchAll(/(\w+)=(\d+)/g)].map(([, name, pid]) => [name, Number(pid)]);
  return Object.fromEntries(found);
}

describe('the tree of a terminal', () => {
  it('holds descendants, its session, what left the session, and what left the family', async () => {
    const { pty, marks, seen } = openScript(`
      sleep 60 & echo child=$!
      setsid sleep 61 & echo leader=$!
      echo $(setsid sh -c 'sleep 62 >&2 & echo orphan=$!')
      (nohup sleep 63 >/dev/null 2>&1 & echo nohup=$!)
      setsid env -i sleep 64 & echo nameless=$!
      echo ready; wait`);
    const { child, leader, orphan, nohup, nameless } = pidsIn(await seen('ready'));
    await eventually(() => readProcess(orphan ?? 0)?.comm === 'sleep');
    const tree = (await findTree(marks)).map(({ pid }) => pid);
    expect(tree).toEqual(
      expect.arrayContaining([marks.pid, child, leader, orphan, nohup, nameless]),
    );
    expect(tree).toHaveLength(6);
    for (const birth of [undefined, pty.birth]) {
      const asOurs = (await findTree({ ...marks, isOurs: true }, birth)).map(({ pid }) => pid);
      expect(asOurs).toEqual(tree);
    }
    // While its parent lives: afterwards nothing would tell that the nameless one belongs to it.
    expect(await endTree(marks, KILL)).toEqual([]);
    expect(readProcess(nameless ?? 0)).toBeUndefined();
  });

  it('is found by the mark alone when all else is gone', async () => {
    const { pty, marks, seen } = openScript(
      '(setsid sh -c \'trap "" HUP; sleep 60 & echo orphan=$! ready\' &); read line',
    );
    const { orphan } = pidsIn(await seen('ready'));
    await pty.send(Buffer.from('\n'), () => undefined);
    await pty.exit;
    pty.close();
    for (const isOurs of [false, true]) {
      for (const birth of [undefined, pty.birth]) {
        const tree = await findTree({ ...marks, ttyDevice: 0, isOurs }, birth);
        expect(tree.map(({ pid }) => pid)).toEqual([orphan]);
      }
    }
    expect(await findTree({ ...marks, ttyDevice: 0, nonce: 'another' })).toEqual([]);
  });

  it('does not ask the top-level process of another terminal of ours whose it is', async () => {
    const [one, other] = [openScript('echo ready; sleep 60'), openScript('echo ready; sleep 60')];
    await Promise.all([one.seen('ready'), other.seen('ready')]);
    const marks = { ...one.marks, nonce: other.marks.nonce };
    const found = async (isOurs: boolean) =>
      (await findTree({ ...marks, isOurs })).some(({ pid }) => pid === other.pty.pid);
    expect(await found(false)).toBe(true);
    expect(await found(true)).toBe(false);
    other.pty.close();
    expect((await other.pty.exit).signal).toBe('SIGHUP');
  });

  it('does not hold a process that has the number of one that ended', async () => {
    const { marks, seen } = openScript('echo ready; sleep 60');
    await seen('ready');
    const recycled = { ...marks, startTime: marks.startTime - 1, ttyDevice: 0, nonce: 'another' };
    expect(await findTree(recycled)).toEqual([]);
    expect(await endTree(recycled, KILL)).toEqual([]);
    expect(readProcess(marks.pid)?.startTime).toBe(marks.startTime);
  });

  it('holds nothing for marks of which none is known: session 0 is not ours', async () => {
    // As of an instance whose supervisor was lost between its fork and the record of its pid.
    const unknown = { pid: 0, startTime: 0, sessionId: 0, ttyDevice: 0, nonce: 'nobody has it' };
    expect(await findTree(unknown)).toEqual([]);
  });

  it('does not hold a process of another mount of devpts, where the same number is another terminal', async () => {
    const script = [
      'mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts',
      'mount --bind /dev/pts/ptmx /dev/ptmx',
      'exec script --quiet --command "tty; exec sleep 1000" /dev/null',
    ].join(' && ');
    const elsewhere = spawn('unshare', ['--mount', 'sh', '-c', script], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const [said] = await Promise.race([once(elsewhere.stdout, 'data'), once(elsewhere, 'exit')]);
    try {
      if (!String(said).includes('/dev/pts/0')) {
        return skipAloud('needs root and a mount namespace of its own');
      }
      const ttyDevice = 136 << 8;
      const { processes } = await scanProcesses();
      const there = processes.filter(
        (one) => one.ttyDevice === ttyDevice && one.parent === elsewhere.pid,
      );
      // The shell, or what it executes already.
      expect(there).toHaveLength(1);
      const marks = { pid: 0, startTime: 0, sessionId: 0, ttyDevice, nonce: 'none' };
      const found = (await findTree(marks)).map(({ pid }) => pid);
      expect(found).not.toContain(there[0]?.pid);
    } finally {
      elsewhere.kill('SIGKILL');
    }
  });

  it('does not hold the process that asks, nor other terminals', async () => {
    const other = openScript('echo ready; sleep 60');
    await other.seen('ready');
    const { marks, seen } = openScript('echo ready; sleep 60');
    await seen('ready');
    const tree = await findTree(marks);
    expect(tree.map(({ pid }) => pid)).not.toContain(process.pid);
    expect(tree.map(({ pid }) => pid)).not.toContain(other.pty.pid);
  });
});

describe('a signal', () => {
  it('reaches a process that is the one it was, and no other of that number', async () => {
    const { pty, seen } = openScript('echo ready; exec sleep 60');
    await seen('ready');
    const now = readProcess(pty.pid);
    if (!now) throw new Error('the child is gone');
    expect(signalProcesses([{ ...now, startTime: now.startTime + 1 }], 'SIGKILL')).toEqual([]);
    expect(readProcess(pty.pid)).toBeDefined();
    expect(signalProcesses([now], 'SIGTERM')).toEqual([now]);
    expect(await pty.exit).toMatchObject({ signal: 'SIGTERM' });
    expect(signalProcesses([now], 'SIGTERM')).toEqual([]);
  });
});

describe('ending a tree', () => {
  it('by killing leaves nothing of a shell with background jobs, one of them nohup', async () => {
    const { pty, marks, seen } = openTerminal(['/bin/bash', '--norc', '-i']);
    await pty.send(
      Buffer.from('sleep 60 & nohup sleep 61 >/dev/null 2>&1 & setsid sleep 62 & echo re""ady\n'),
      () => undefined,
    );
    await seen('ready\r\n');
    await eventually(async () => (await findTree(marks)).filter(isSleep).length === 3);
    expect(await endTree(marks, KILL)).toEqual([]);
    expect(await pty.exit).toMatchObject({ signal: 'SIGKILL' });
    expect(await findTree(marks)).toEqual([]);
  });

  it('by killing reaches what is forked while it goes on', async () => {
    const { marks, seen } = openScript(
      'fork() { while :; do (setsid sh -c "sleep 5" &); done; }; fork & fork & echo ready; wait',
    );
    await seen('ready');
    expect(await endTree(marks, { signals: ['SIGKILL'], graceMs: 20_000 })).toEqual([]);
    expect(await findTree(marks)).toEqual([]);
  });

  it('by stopping ends an interactive shell, which ignores SIGTERM, at once', async () => {
    const { pty, marks, seen } = openTerminal(['/bin/bash', '--norc', '-i']);
    await pty.send(Buffer.from('echo re""ady\n'), () => undefined);
    await seen('ready\r\n');
    const begin = performance.now();
    expect(await endTree(marks, STOP)).toEqual([]);
    expect(performance.now() - begin).toBeLessThan(STOP.graceMs / 2);
    expect(await pty.exit).toMatchObject({ exitCode: 129 });
  });

  it('by stopping does not cut short a program that ends in good order', async () => {
    const { pty, output, marks, seen } = openScript(
      'trap "sleep 0.5; echo flushed; exit 0" TERM; echo ready; while :; do sleep 0.05; done',
    );
    await seen('ready');
    expect(await endTree(marks, STOP)).toEqual([]);
    expect(await pty.exit).toMatchObject({ exitCode: 0 });
    expect(output().toString()).toContain('flushed');
  });

  it('by stopping ends a process that is stopped', async () => {
    const { pty, marks, seen } = openScript('echo ready; kill -STOP $$; sleep 60');
    await seen('ready');
    await eventually(() => readProcess(marks.pid)?.state === 'T');
    expect(await endTree(marks, STOP)).toEqual([]);
    expect(await pty.exit).toMatchObject({ signal: 'SIGTERM' });
  });

  it('by stopping reports what still lives when the grace is over, and never kills it', async () => {
    const { marks, seen } = openScript('trap "" TERM HUP; echo ready; while :; do sleep 0.1; done');
    await seen('ready');
    const survivors = await endTree(marks, { ...STOP, graceMs: 200 });
    expect(survivors.map(({ pid }) => pid)).toContain(marks.pid);
    expect(survivors.find(({ pid }) => pid === marks.pid)?.comm).toBe('sh');
    expect(readProcess(marks.pid)?.startTime).toBe(marks.startTime);
  });

  it('signals at least once even without a grace', async () => {
    const { pty, marks, seen } = openScript('echo ready; exec sleep 60');
    await seen('ready');
    await endTree(marks, { signals: ['SIGKILL'], graceMs: 0 });
    expect(await pty.exit).toMatchObject({ signal: 'SIGKILL' });
  });
});

describe('a scan', () => {
  /** The number of one of them may have come round and lie among the latest; not of all. */
  const elders = [1, process.ppid, process.pid];

  it('is shared by those who ask before it begins, and never one that began before', async () => {
    const first = scanProcesses();
    expect(scanProcesses()).toBe(first);
    await Promise.resolve();
    await Promise.resolve();
    await Promise.resolve();
    const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore' });
    const second = scanProcesses();
    expect(second).not.toBe(first);
    expect(scanProcesses()).toBe(second);
    const { processes } = await second;
    expect(processes.map(({ pid }) => pid)).toContain(child.pid);
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('exit', resolve));
  });

  it('of what began since a fork reads that and nothing older', async () => {
    const { pty, seen } = openScript('sleep 60 & echo child=$! ready; wait');
    const { child } = pidsIn(await seen('ready'));
    const { processes, covers } = await scanProcesses(pty.birth);
    const pids = processes.map(({ pid }) => pid);
    expect(pids).toEqual(expect.arrayContaining([pty.pid, child]));
    expect(elders.every((pid) => pids.includes(pid))).toBe(false);
    expect(elders.every(covers)).toBe(false);
  });

  it('that is shared reads what the one who asks for most wants', async () => {
    const [older, younger] = [
      openScript('echo ready; sleep 60'),
      openScript('echo ready; sleep 60'),
    ];
    await Promise.all([older.seen('ready'), younger.seen('ready')]);
    const wide = scanProcesses(younger.pty.birth);
    expect(scanProcesses(older.pty.birth)).toBe(wide);
    const pids = (await wide).processes.map(({ pid }) => pid);
    expect(pids).toEqual(expect.arrayContaining([older.pty.pid, younger.pty.pid]));
    expect(elders.every((pid) => pids.includes(pid))).toBe(false);
    const all = scanProcesses(younger.pty.birth);
    expect(scanProcesses()).toBe(all);
    expect((await all).processes.map(({ pid }) => pid)).toContain(process.pid);
  });

  it.each([
    ['the kernel does not count forks', undefined],
    ['more were forked since than pids may pass by unseen', -1_000_000_000],
  ])('reads everything where %s', async (_, forks) => {
    const { processes } = await scanProcesses({ pid: process.pid + 1, forks });
    expect(processes.map(({ pid }) => pid)).toContain(process.pid);
  });

  it('reads a name with spaces and parentheses', async () => {
    const { pty, seen } = openScript(
      'printf "%s" "a) R 1 (b" >/proc/$$/comm; echo ready; read line',
    );
    await seen('ready');
    expect(readProcess(pty.pid)).toMatchObject({
      pid: pty.pid,
      comm: 'a) R 1 (b',
      parent: process.pid,
    });
  });
});

function isSleep({ comm }: { readonly comm: string }): boolean {
  return comm === 'sleep';
}
