import type { LeaseSource } from '../../src/session/leaseSource.js';
import { keysInput, pasteInput } from '../../src/session/sendInput.js';
import type { TerminalKey } from '../../src/supervisor/api.js';
import { heldBack } from '../support/heldBack.js';
import { lease } from '../support/registry.js';
import { settledBefore } from '../support/sessionDriver.js';
import { type LiveSession, type LiveSessions, startSessions } from './liveSessions.js';

let live: LiveSessions;
let session: LiveSession;

beforeAll(async () => {
  live = await startSessions();
  session = await live.spawn();
});

afterAll(() => live[Symbol.asyncDispose]());

const keyOf = ({ id }: LiveSession): TerminalKey => ({ owner: live.agent.owner, id: id as never });

async function untilOutput(send: ReturnType<LiveSession['start']>, pattern: RegExp) {
  let output = send.readOutput().delta;
  while (!pattern.test(output)) {
    await Promise.race([send.changed(), settledBefore(pattern, send.done)]);
    output += send.readOutput().delta;
  }
  return output;
}

describe('a send', () => {
  it('has one consuming cursor: what was read is not in the result again', async () => {
    const send = session.start({ text: 'echo first; read x; echo second', submit: true });
    const read = await untilOutput(send, /\nfirst\n/);
    expect(read).toMatch(/^echo first; read x; echo second\nfirst\n$/);
    expect(send.readOutput()).toEqual({ delta: '', truncated: false });
    const { viewport } = await send.done;
    expect(viewport).toBe('');
    expect((await session.send('go')).viewport).toMatch(/^go\nsecond\n.*[#$] $/);
  });

  it('reads nothing after it has settled', async () => {
    const send = session.start({ text: 'echo x', submit: true });
    await send.done;
    expect(send.readOutput()).toEqual({ delta: '', truncated: false });
    expect(send.cancel()).toBe(false);
  });

  it('says from which seq its output came and through which it is rendered', async () => {
    const send = session.start({ text: 'echo seqs', submit: true });
    const { lastSeq: before } = await send.started;
    const { lastSeq: after } = await send.done;
    const snapshot = await live.supervisor.get(keyOf(session));
    expect(after).toBe((snapshot?.nextSeq ?? 0) - 1);
    expect(before).toBeLessThan(after);
  });

  it('loses and repeats no output over many sends in a row', async () => {
    const count = 60;
    const reasons = new Set<string>();
    let seen = '';
    for (let index = 0; index < count; index += 1) {
      const { viewport, waitReason } = await session.send(`echo value $((${index}*3))`);
      reasons.add(waitReason);
      seen += viewport;
    }
    expect([...reasons]).toEqual(['stdin_read']);
    const values = [...seen.matchAll(/^value (\d+)$/gm)].map(([, value]) => Number(value));
    expect(values).toEqual(Array.from({ length: count }, (_, index) => index * 3));
  });

  it('gives output that came between two sends to the second one', async () => {
    const { waitReason } = await session.send('sleep 0.4; echo late', { timeoutMs: 100 });
    expect(waitReason).toBe('timeout');
    await live.screens.ask(
      { ...keyOf(session), uid: (await live.supervisor.get(keyOf(session)))?.record.uid ?? '' },
      'screen',
      { format: 'text' },
    );
    expect((await session.send('echo now')).viewport).toMatch(/late\n.*now\n/s);
  });

  it('types named keys and pastes as a terminal in the program’s modes does', async () => {
    const modes = { applicationCursorKeys: false, bracketedPaste: true };
    await session.send('echo recalled');
    const recalled = await session.start({ text: keysInput(['Up', 'Enter'], modes) }).done;
    expect(recalled.viewport).toMatch(/\nrecalled\n/);
    // A line feed in a paste runs nothing before Enter is pressed.
    const pasted = await session.start({ text: pasteInput('echo a\necho b', modes) }).done;
    expect(pasted.viewport).not.toMatch(/^[ab]$/m);
    const { viewport } = await session.send('');
    expect(viewport).toMatch(/\na\nb\n/);
  });

  it('waits alone when it has nothing to type', async () => {
    const { waitReason, viewport } = await session.start({}).done;
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toBe('');
  });

  it('does not come back at 0 ms from a wait for silence (a program that says nothing)', async () => {
    await using silent = await heldBack();
    const started = performance.now();
    const { waitReason } = await session.send(silent.command.join(' '));
    expect(performance.now() - started).toBeGreaterThan(2_900);
    expect(waitReason).toBe('inferred_idle');
    await silent.letGo();
    expect((await session.start({}).done).waitReason).toBe('stdin_read');
  });

  it('is rejected, and types nothing, when its authority does not hold', async () => {
    const refused: LeaseSource = { lease: () => ({ id: 'over', notAfter: 1 }) };
    const send = session.start({ text: 'echo never', submit: true, leases: refused });
    await expect(send.done).rejects.toMatchObject({ reason: 'TOKEN_EXPIRED' });
    expect((await session.send('echo next')).viewport).not.toMatch(/never/);
  });

  it('is not begun when its signal is aborted already', () => {
    const reason = new Error('too late');
    const signal = AbortSignal.abort(reason);
    expect(() => session.start({ text: 'echo never', submit: true, signal })).toThrow(reason);
  });
});

describe('output that could fool a send', () => {
  it('a burst between the write and the first poll is there whole', async () => {
    const { viewport, waitReason, truncated } = await session.send('seq 1 5000');
    expect(waitReason).toBe('stdin_read');
    const numbers = viewport.split('\n').filter((line) => /^\d+$/.test(line));
    expect(numbers).toEqual(Array.from({ length: 5000 }, (_, index) => `${index + 1}`));
    expect(truncated).toBe(false);
  });

  it('a child that prints a prompt mark without our secret is not believed', async () => {
    const forged =
      "printf '\\e]133;C\\a\\e]133;B\\a\\e]133;B;grantty=00000000000000000000000000000000\\a'";
    const { waitReason, viewport } = await session.send(`${forged}; sleep 0.5; echo finished`);
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toMatch(/\nfinished\n/);
  });

  it('a child that prints our very mark is not believed while it is in the foreground', async () => {
    // The shell's own strings, expanded as it prints them, in a child.
    const { waitReason, viewport } = await session.send(
      '(printf %s "$PS0$PS1" | sed "s/[\\\\]\\[//;s/[\\\\]\\]//" > /dev/null; m=$(printf %b "$PS0$PS1"); printf %s "$m"; exec sleep 0.5); echo finished',
    );
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toMatch(/finished\n.*[#$] $/);
  });

  it('the prompt of the send before, delayed past the next write, does not end the next one', async () => {
    expect((await session.send('sleep 0.5', { timeoutMs: 100 })).waitReason).toBe('timeout');
    const { waitReason, viewport } = await session.send('sleep 0.4; echo second');
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toMatch(/\nsecond\n.*[#$] $/);
  });

  it('several commands in one text are waited for to the last', async () => {
    const { viewport } = await session.send('sleep 0.2; echo one\nsleep 0.2; echo two');
    expect(viewport).toMatch(/\none\n(.*\n)*two\n/);
  });

  it('a prompt that the person’s own set-up changes is still known', async () => {
    await session.send("PS1='\\u says: '");
    const { waitReason, viewport } = await session.send('sleep 0.2; echo there');
    expect(waitReason).toBe('stdin_read');
    expect(viewport).toMatch(/\nthere\n\w+ says: $/);
  });

  it('a progress bar by carriage returns shows its last state', async () => {
    const bar = 'for i in 10 50 100; do printf "\\r%3d%%" $i; done; echo';
    const { viewport } = await session.send(bar);
    expect(viewport).toMatch(/\n100%\n/);
    expect(viewport).not.toMatch(/ 50%/);
  });

  it('a 4-byte character split over two writes is rendered once, whole', async () => {
    const { viewport } = await session.send(
      "printf '\\xf0\\x9f'; sleep 0.1; printf '\\x98\\x80\\n'",
    );
    expect(viewport).toMatch(/\n😀\n/);
  });
});

describe('cancellation', () => {
  /** Settles by itself only after 100 s; says when it runs. */
  const running = "bash -c 'echo is up; exec sleep 100'";
  const up = /^is up$/m;

  it('interrupts the foreground program by SIGINT; the shell lives', async () => {
    const send = session.start({ text: running, submit: true });
    await untilOutput(send, up);
    expect(send.cancel()).toBe(true);
    const { waitReason, sessionStatus } = await send.done;
    expect(waitReason).toBe('stdin_read');
    expect(sessionStatus).toEqual({ kind: 'running' });
    expect((await session.send('echo $?')).viewport).toMatch(/\n130\n/);
  });

  it('is what aborting the request’s signal does', async () => {
    const controller = new AbortController();
    const send = session.start({ text: running, submit: true, signal: controller.signal });
    await untilOutput(send, up);
    controller.abort();
    expect((await send.done).waitReason).toBe('stdin_read');
    expect((await session.send('echo $?')).viewport).toMatch(/\n130\n/);
  });

  it('of a program that ignores SIGINT lets the send settle as the program does', async () => {
    await using program = await heldBack();
    const ignoring = `bash -c 'trap "" INT; echo is up; ${program.command.join(' ')}; echo stayed'`;
    const send = session.start({ text: ignoring, submit: true });
    await untilOutput(send, up);
    // As `cancel`, and the signal has been sent before the program goes on.
    expect(await send.interrupt({ lease: () => lease })).toBe(true);
    await program.letGo();
    expect((await send.done).viewport).toMatch(/^stayed\n/);
  });

  it('needs authority of its own', async () => {
    const leases: LeaseSource = {
      lease: (effect) => (effect === 'signal' ? { id: 'over', notAfter: 1 } : lease),
    };
    const send = session.start({ text: 'sleep 0.5', submit: true, leases });
    await send.started;
    send.cancel(leases);
    await expect(send.done).rejects.toMatchObject({ reason: 'TOKEN_EXPIRED' });
    expect((await session.start({}).done).waitReason).toBe('stdin_read');
  });
});

describe('a session’s slot', () => {
  it('is held after a time-out as long as the input is not taken', async () => {
    const stuck = await live.spawn();
    // Raw mode keeps no more than its buffer of what nobody reads.
    const deaf = "bash -c 'stty raw -echo; echo is deaf; exec sleep 1000'";
    const started = stuck.start({ text: deaf, submit: true });
    await untilOutput(started, /^is deaf/m);
    await started.done;
    const { waitReason } = await stuck.start({ text: 'x'.repeat(60_000), timeoutMs: 200 }).done;
    expect(waitReason).toBe('timeout');
    expect(() => stuck.start({})).toThrow(expect.objectContaining({ code: 'SEND_ACTIVE' }));
    expect(await stuck.kill()).toBe(true);
  });

  it('refuses a second send as SEND_ACTIVE and takes one when the first has settled', async () => {
    const first = session.start({ text: 'sleep 0.2', submit: true });
    expect(() => session.start({ text: 'echo' })).toThrow(
      expect.objectContaining({ code: 'SEND_ACTIVE' }),
    );
    await first.done;
    await session.send('echo free');
  });
});

describe('a session', () => {
  it('is a durable terminal too, of backend shell, swept at its exit, 160x40', async () => {
    const terminal = await live.supervisor.get(keyOf(session));
    expect(terminal?.record).toMatchObject({
      backend: 'shell',
      onExit: 'sweep',
      size: { cols: 160, rows: 40 },
      agent: 'coder',
      session: 'default',
    });
  });

  it('shows its secret to no child: neither in an environment nor by a descriptor', async () => {
    const { viewport } = await session.send(
      'env | grep -c -i grantty; tr "\\0" "\\n" < /proc/$$/environ | grep -c -i grantty; ls /proc/self/fd | wc -l',
    );
    // Standard input, output and error, and the directory that ls reads.
    expect(viewport).toMatch(/\n0\n0\n4\n/);
  });

  it('wakes its waiting send when it exits without any output', async () => {
    await using program = await heldBack();
    const quiet = await live.spawn({ command: program.command });
    const send = quiet.start({});
    await send.started;
    await program.letGo();
    const { waitReason, viewport, sessionStatus } = await send.done;
    expect(waitReason).toBe('session_exit');
    expect(viewport).toBe('');
    expect(sessionStatus).toEqual({ kind: 'exited', exitCode: 0, signal: null });
  });

  it('of a command that prints and exits at once has all of its output', async () => {
    const brief = await live.spawn({ command: ['printf', 'hello'] });
    expect(brief.motd).toBe('hello');
    expect(brief.read().text).toBe('hello\n');
    expect(brief.list()?.status).toEqual({ kind: 'exited', exitCode: 0, signal: null });
  });

  it('signals the verified foreground group', async () => {
    const send = session.start({ text: "bash -c 'echo is up; exec sleep 100'", submit: true });
    await untilOutput(send, /^is up$/m);
    const { targetPgid, delivered } = await live.service.signal(
      live.agent,
      session.id as never,
      'SIGTERM',
    );
    expect(delivered).toBe(true);
    expect(targetPgid).not.toBe(session.pid);
    expect((await send.done).viewport).toMatch(/Terminated/);
  });

  it('stays a durable terminal with its history when it is closed', async () => {
    const closing = await live.spawn();
    await closing.send('echo kept');
    expect(await closing.kill()).toBe(true);
    expect(closing.list()).toBeUndefined();
    const { record, nextSeq } = (await live.supervisor.get(keyOf(closing))) ?? {};
    expect(record?.state).toBe('exited');
    const key = { ...keyOf(closing), uid: record?.uid ?? '' };
    const page = await live.screens.ask(key, 'page', {});
    expect(page).toMatchObject({ throughSeq: (nextSeq ?? 0) - 1 });
    expect(page.text).toMatch(/\nkept\n/);
  });

  it('whose spawn is cancelled leaves nothing, not even a record', async () => {
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    const before = (await live.supervisor.list()).length;
    const spawned = live.service.spawn(
      live.agent,
      { type: 'shell', resource: { command: ['sleep', '1000'] } },
      controller.signal,
    );
    const watching = new AbortController();
    for await (const change of live.supervisor.changes(undefined, watching.signal)) {
      if (change.kind === 'changed') break;
    }
    controller.abort(reason);
    await expect(spawned).rejects.toBe(reason);
    expect(await live.supervisor.list()).toHaveLength(before);
  });
});
