/** Why sends come back, program by program: the same matrix for every way to a session. */
import { heldBack } from './heldBack.js';
import type { DrivenSession, SessionDriver } from './sessionDriver.js';
import { onPath, skipAloud } from './skipAloud.js';

/** The exact probe needs a machine whose system calls it knows. */
const probes = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
/** What a program that waits for input comes back with here. */
const reads = probes ? 'stdin_read' : 'inferred_idle';

/** A program that is started from the shell, waits, and is left again. */
interface Program {
  readonly title: string;
  /** What it needs on the PATH. */
  readonly needs?: string;
  readonly command: string;
  readonly shows: RegExp;
  /** Typed as they are; each of them gets the program to wait again. */
  readonly steps?: readonly { readonly text: string; readonly shows: RegExp }[];
  readonly leave: string;
}

const inThread =
  'import threading;t=threading.Thread(target=lambda:print("got",input("? ")));t.start();t.join();input("end? ")';
const inExecutor = [
  'import asyncio,sys',
  'async def main():',
  '  loop = asyncio.get_running_loop()',
  '  print("got", await loop.run_in_executor(None, lambda: input("? ")))',
  'asyncio.run(main())',
].join('\\n');

const programs: readonly Program[] = [
  {
    title: 'cat',
    command: 'cat',
    shows: /^cat\n$/,
    steps: [{ text: 'meow\r', shows: /^meow\nmeow\n$/ }],
    leave: '\x04',
  },
  {
    title: 'a pipeline whose first program reads',
    command: 'cat | sort',
    shows: /^cat \| sort\n$/,
    steps: [
      { text: 'b\r', shows: /^b\n$/ },
      { text: 'a\r', shows: /^a\n$/ },
    ],
    leave: '\x04',
  },
  {
    title: 'a script whose child reads',
    command: "sh -c 'echo name; head -n 1 >/dev/null; echo done'; true",
    shows: /\nname\n$/,
    leave: 'x\r',
  },
  {
    title: 'a password read with echo off, as ssh does it',
    command: "python3 -c 'import getpass; print(len(getpass.getpass()))'",
    needs: 'python3',
    shows: /\nPassword: $/,
    leave: 'hunter2\r',
  },
  {
    title: 'a password read with echo off by the shell itself',
    command: 'read -rs -p "Password: " secret; echo; echo "it is $secret"',
    shows: /\nPassword: $/,
    leave: 'hunter2\r',
  },
  {
    title: 'the REPL of python3',
    needs: 'python3',
    command: 'python3 -q',
    shows: />>> $/,
    steps: [{ text: '6*7\r', shows: /^6\*7\n42\n>>> $/ }],
    leave: 'exit()\r',
  },
  {
    title: 'the REPL of node',
    command: `${process.execPath} -i`,
    shows: /> $/,
    steps: [{ text: '6*7\r', shows: /42\n> $/ }],
    leave: '.exit\r',
  },
  {
    title: 'a program that reads in a thread',
    needs: 'python3',
    command: `python3 -c '${inThread}'`,
    shows: /\n\? $/,
    steps: [{ text: 'it\r', shows: /^it\ngot it\nend\? $/ }],
    leave: '\r',
  },
  {
    title: 'a program that reads in a thread of a pool while an event loop runs',
    needs: 'python3',
    command: `python3 -c "$(printf '${inExecutor}')"`,
    shows: /\n\? $/,
    leave: 'it\r',
  },
  {
    title: 'vim',
    needs: 'vim',
    command: 'vim -u NONE -N -n /etc/passwd',
    shows: /root:/,
    steps: [{ text: 'ihello ', shows: /hello root:/ }],
    leave: '\x1b:q!\r',
  },
  {
    title: 'less',
    needs: 'less',
    command: 'seq -f "line %g" 1000 > /tmp/$$.seq; less /tmp/$$.seq; rm /tmp/$$.seq',
    shows: /line 2/,
    steps: [{ text: 'G', shows: /line 1000/ }],
    leave: 'q',
  },
  { title: 'top', needs: 'top', command: 'top', shows: /PID USER/, leave: 'q' },
];

/** @param carrier - how the calls travel, for the test's name */
export function waitReasonMatrix(carrier: string, open: () => Promise<SessionDriver>): void {
  describe(`why a send comes back, ${carrier}`, () => {
    let driver: SessionDriver;
    let session: DrivenSession;

    beforeAll(async () => {
      driver = await open();
      session = await driver.spawn();
    });

    afterAll(() => driver[Symbol.asyncDispose]());

    it('stdin_read at the shell’s prompt', async () => {
      const { waitReason, text, truncated, status } = await session.send('echo hi');
      expect(waitReason).toBe('stdin_read');
      expect(text).toMatch(/^echo hi\nhi\n.*[#$] $/);
      expect(truncated).toBe(false);
      expect(status).toEqual({ kind: 'running' });
    });

    it('stdin_read after a command that ran for a while, and not before it ended', async () => {
      const { waitReason, text } = await session.send('sleep 0.3; echo later');
      expect(waitReason).toBe('stdin_read');
      expect(text).toMatch(/\nlater\n/);
    });

    it('stdin_read after a pipeline of the shell, and not before its slowest part ended', async () => {
      const { waitReason, text } = await session.send(
        '(sleep 0.4; printf "b\\na\\n") | sort | tr a-z A-Z',
      );
      expect(waitReason).toBe('stdin_read');
      expect(text).toMatch(/\nA\nB\n/);
    });

    it.each(programs.map((program) => [program.title, program] as const))(
      `${reads} in %s, and stdin_read at the prompt after it`,
      async (_title, { needs, command, shows, steps = [], leave }) => {
        if (needs !== undefined && !onPath(needs)) return skipAloud(`${needs} is not installed`);
        const started = await session.send(command);
        expect(started.text).toMatch(shows);
        expect(started.waitReason).toBe(reads);
        const key = { owner: (await terminal()).owner, id: session.id as never };
        // `read` is of the shell itself.
        const inShell = command.startsWith('read ');
        expect((await driver.supervisor.foreground(key)).shellInForeground).toBe(inShell);
        for (const step of steps) {
          const { text, waitReason } = await session.send(step.text, { submit: false });
          expect(text).toMatch(step.shows);
          expect(waitReason).toBe(reads);
        }
        const left = await session.send(leave, { submit: false });
        expect(left.waitReason).toBe('stdin_read');
        expect((await driver.supervisor.foreground(key)).shellInForeground).toBe(true);
        expect((await session.send('echo back')).text).toMatch(/back\n.*[#$] $/);
      },
    );

    it('timeout, then inferred_idle, then stdin_read in a silent program, which no send ends', async () => {
      await using silent = await heldBack();
      const sleeping = await session.send(silent.command.join(' '), { timeoutMs: 300 });
      expect(sleeping.waitReason).toBe('timeout');
      expect(sleeping.status).toEqual({ kind: 'running' });
      const begin = performance.now();
      expect((await session.send('', { submit: false })).waitReason).toBe('inferred_idle');
      expect(performance.now() - begin).toBeGreaterThan(2_900);
      await silent.letGo();
      const after = await session.send('', { submit: false });
      expect(after.waitReason).toBe('stdin_read');
      expect((await session.send('echo "status $?"')).text).toMatch(/\nstatus 0\n/);
    });

    it('session_exit with output, status and exit code when the shell exits', async () => {
      const exiting = await driver.spawn();
      const { waitReason, text, status } = await exiting.send('echo bye; exit 3');
      expect(waitReason).toBe('session_exit');
      expect(text).toMatch(/\nbye\n/);
      expect(status).toEqual({ kind: 'exited', exitCode: 3, signal: null });
      const listed = (await driver.list()).find(({ id }) => id === exiting.id);
      expect(listed?.status).toEqual(status);
      const sending = exiting.send('x');
      await expect(sending).rejects.toMatchObject({ reason: 'TERMINAL_EXITED' });
    });

    it('session_exit for the shell, not for a child that exits', async () => {
      const { waitReason, status } = await session.send('bash -c "exit 9"');
      expect(waitReason).toBe('stdin_read');
      expect(status).toEqual({ kind: 'running' });
    });

    it('session_exit of a shell that a signal ends: no exit code, the signal', async () => {
      const killed = await driver.spawn();
      const { waitReason, status } = await killed.send('kill -KILL $$');
      expect(waitReason).toBe('session_exit');
      expect(status).toEqual({ kind: 'exited', exitCode: null, signal: 'SIGKILL' });
    });

    async function terminal() {
      const all = await driver.supervisor.list();
      const found = all.find(({ record }) => record.id === session.id);
      if (!found) throw new Error(`there is no terminal ${session.id}`);
      return found.record;
    }
  });
}
