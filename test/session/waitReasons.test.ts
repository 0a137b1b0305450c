import { onPath, skipAloud } from '../support/skipAloud.js';
import { type LiveSession, type LiveSessions, startSessions } from './liveSessions.js';

/** The exact probe needs a machine whose system calls it knows. */
const probes = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
/** What a program that waits for input comes back with here. */
const reads = probes ? 'stdin_read' : 'inferred_idle';

let live: LiveSessions;
let session: LiveSession;

beforeAll(async () => {
  live = await startSessions();
  session = await live.spawn();
});

afterAll(() => live[Symbol.asyncDispose]());

describe('why a send comes back', () => {
  it('stdin_read at the shell’s prompt', async () => {
    const { waitReason, viewport, truncated, sessionStatus } = await session.send('echo hi');
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toMatch(/^echo hi\nhi\n.*[#$] $/);
    expect(truncated).toBe(false);
    expect(sessionStatus).toEqual({ kind: 'running' });
  });

  it('stdin_read after a command that ran for a while, and not before it ended', async () => {
    const { waitReason, viewport } = await session.send('sleep 0.3; echo later');
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toMatch(/\nlater\n/);
  });

  it('stdin_read after a pipeline of the shell', async () => {
    const { waitReason, viewport } = await session.send('printf "b\\na\\n" | sort | tr a-z A-Z');
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toMatch(/\nA\nB\n/);
  });

  it('cat that waits for a line, and back to the prompt at its end', async () => {
    expect((await session.send('cat')).waitReason).toBe(reads);
    const { waitReason, viewport } = await session.send('meow');
    expect(waitReason).toBe(reads);
    expect(viewport).toBe('meow\nmeow\n');
    expect((await session.start({ text: '\x04' }).done).waitReason).toBe('stdin_read');
  });

  it('a password read with echo off', async () => {
    const asked = await session.send('read -rs -p "Password: " secret; echo; echo "it is $secret"');
    expect(asked.waitReason).toBe(reads);
    expect(asked.viewport).toMatch(/\nPassword: $/);
    const answered = await session.send('hunter2');
    expect(answered.waitReason).toBe('stdin_read');
    expect(answered.viewport).toMatch(/^\nit is hunter2\n/);
  });

  it('the REPL of python3', async () => {
    if (!onPath('python3')) return skipAloud('python3 is not installed');
    const started = await session.send('python3 -q');
    expect(started.waitReason).toBe(reads);
    expect(started.viewport).toMatch(/>>> $/);
    expect((await session.send('6*7')).viewport).toBe('6*7\n42\n>>> ');
    expect((await session.send('exit()')).waitReason).toBe('stdin_read');
  });

  it('a python3 program that reads in a thread', async () => {
    if (!onPath('python3')) return skipAloud('python3 is not installed');
    const program =
      'import threading;t=threading.Thread(target=lambda:print("got",input("? ")));t.start();t.join()';
    const started = await session.send(`python3 -c '${program}'`);
    // The main thread waits for the other one, not for the terminal.
    expect(['stdin_read', 'inferred_idle']).toContain(started.waitReason);
    expect(started.viewport).toMatch(/\n\? $/);
    expect((await session.send('it')).viewport).toMatch(/^it\ngot it\n/);
  });

  it('the REPL of node', async () => {
    const started = await session.send(`${process.execPath} -i`);
    // Its other threads wait for work, not for the terminal.
    expect(['stdin_read', 'inferred_idle']).toContain(started.waitReason);
    expect(started.viewport).toMatch(/> $/);
    expect((await session.send('.exit')).waitReason).toBe('stdin_read');
  });

  it.each([
    ['vim', 'vim -u NONE -N -n /etc/passwd', ':q!\r'],
    ['less', 'less /etc/passwd', 'q'],
    ['top', 'top', 'q'],
  ])('%s, as a person sees it, and the prompt after it', async (program, command, leave) => {
    if (!onPath(program)) return skipAloud(`${program} is not installed`);
    const shown = await session.send(command);
    expect(['stdin_read', 'inferred_idle']).toContain(shown.waitReason);
    const key = { owner: live.agent.owner, id: session.id as never };
    expect((await live.supervisor.foreground(key)).shellInForeground).toBe(false);
    expect(shown.viewport.length).toBeGreaterThan(command.length + 5);
    const left = await session.start({ text: leave }).done;
    expect(left.waitReason).toBe('stdin_read');
    expect((await live.supervisor.foreground(key)).shellInForeground).toBe(true);
  });

  it('timeout of a program that neither reads nor prints, which lives on', async () => {
    const sleeping = await session.send('sleep 4', { timeoutMs: 300 });
    expect(sleeping.waitReason).toBe('timeout');
    expect(sleeping.sessionStatus).toEqual({ kind: 'running' });
    const again = await session.start({}).done;
    expect(again.waitReason).toBe('inferred_idle');
    // A time-out signals nothing: the command runs to its own end.
    const after = await session.start({}).done;
    expect(after.waitReason).toBe('stdin_read');
    expect((await session.send('echo "status $?"')).viewport).toMatch(/\nstatus 0\n/);
  });

  it('session_exit with output, status and exit code when the shell exits', async () => {
    const exiting = await live.spawn();
    const { waitReason, viewport, sessionStatus } = await exiting.send('echo bye; exit 3');
    expect(waitReason).toBe('session_exit');
    expect(viewport).toMatch(/\nbye\n/);
    expect(sessionStatus).toEqual({ kind: 'exited', exitCode: 3, signal: null });
    expect(exiting.list()?.status).toEqual(sessionStatus);
    expect(() => exiting.start({ text: 'x' })).toThrow(
      expect.objectContaining({ reason: 'TERMINAL_EXITED' }),
    );
  });

  it('session_exit for the shell, not for a child that exits', async () => {
    const { waitReason, sessionStatus } = await session.send('bash -c "exit 9"');
    expect(waitReason).toBe('stdin_read');
    expect(sessionStatus).toEqual({ kind: 'running' });
  });

  it('session_exit of a shell that a signal ends: no exit code, the signal', async () => {
    const killed = await live.spawn();
    const { waitReason, sessionStatus } = await killed.send('kill -KILL $$');
    expect(waitReason).toBe('session_exit');
    expect(sessionStatus).toEqual({ kind: 'exited', exitCode: null, signal: 'SIGKILL' });
  });
});
