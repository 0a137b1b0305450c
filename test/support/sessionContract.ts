/** What the specification of sessions promises, sentence by sentence: the same for every way to a session. */
import { heldBack } from './heldBack.js';
import type { DrivenSession, SessionDriver } from './sessionDriver.js';

/** A group of sends that a fresh snapshot of nothing else disturbs. */
const VIEWPORT_BYTES = 256 * 1024;
const IGNORES_ITS_END = `(trap '' TERM HUP; while :; do sleep 1; done) &`;

const pause = () => new Promise((resolve) => setTimeout(resolve, 10));

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause();
}

/** @param carrier - how the calls travel, for the test's name */
export function sessionContract(carrier: string, open: () => Promise<SessionDriver>): void {
  describe(`sessions ${carrier}: as the specification says`, () => {
    let driver: SessionDriver;
    let session: DrivenSession;

    beforeAll(async () => {
      driver = await open();
      session = await driver.spawn({ name: 'main', cwd: '/tmp' });
    });

    afterAll(() => driver[Symbol.asyncDispose]());

    // What a failed test left does not disturb the next one.
    afterEach(async () => {
      for (const agent of ['coder', 'other']) {
        for (const { id } of await driver.list(agent)) {
          if (id !== session.id) await driver.of(id, agent).close();
        }
      }
    });

    const refusal = async (call: Promise<unknown>) =>
      driver.codeOf(
        await call.then(
          () => undefined,
          (error: unknown) => error,
        ),
      );

    describe('identity', () => {
      it('TerminalSessionId: "an id that the service issues"', async () => {
        expect(session.id).toMatch(/^session-[0-9a-f]{16}$/);
        const other = await driver.spawn();
        expect(other.id).not.toBe(session.id);
        await other.close();
      });

      it('"the optional name is display metadata local to its owner"', async () => {
        expect(await refusal(driver.spawn({ name: 'main' }))).toBe(driver.codes.DUPLICATE_NAME);
        const foreign = await driver.spawn({ name: 'main', agent: 'other' });
        expect((await driver.list('other')).map(({ name }) => name)).toEqual(['main']);
        await foreign.close();
      });

      it('"authority compares the exact owner, not a name or a guessed id"', async () => {
        const stranger = driver.of(session.id, 'other');
        const { FOREIGN_SESSION } = driver.codes;
        expect(await refusal(stranger.send('echo mine'))).toBe(FOREIGN_SESSION);
        expect(await refusal(stranger.read())).toBe(FOREIGN_SESSION);
        expect(await refusal(stranger.signal('SIGINT'))).toBe(FOREIGN_SESSION);
        expect(await refusal(stranger.close())).toBe(FOREIGN_SESSION);
        const guessed = driver.of('session-0123456789abcdef');
        expect(await refusal(guessed.send('echo mine'))).toBe(driver.codes.NO_SESSION);
        expect((await session.send('true')).text).not.toContain('mine');
      });
    });

    describe('TerminalBackend', () => {
      it('type: "stable type selected by TerminalSpawnRequest.type"', async () => {
        expect((await driver.list())[0]?.type).toBe('shell');
        expect(await refusal(driver.spawn({ type: 'none' }))).toBe(driver.codes.NO_BACKEND);
      });

      it('spawn: "create an unpublished session or reject after cleaning partial resources"', async () => {
        const before = (await driver.supervisor.list()).length;
        const controller = new AbortController();
        const spawning = driver.spawn({
          agent: 'leaver',
          env: { PROMPT_COMMAND: 'sleep 1000' },
          signal: controller.signal,
        });
        await until(async () => (await driver.supervisor.list()).length > before);
        expect(await driver.list('leaver')).toEqual([]);
        controller.abort(new Error('enough'));
        await expect(spawning).rejects.toThrow('enough');
        await until(async () => (await driver.supervisor.list()).length === before);
        await until(async () => !(await driver.hasActivity('leaver')));
      });
    });

    describe('TerminalBackendSession', () => {
      it('motd: "initial bounded terminal output"', async () => {
        expect(session.motd).toMatch(/[#$] $/);
        const talker = await driver.spawn({ env: { PROMPT_COMMAND: 'seq 1 100000' } });
        expect(talker.motd).toMatch(/\n99999\n100000\n.*[#$] $/);
        expect(Buffer.byteLength(talker.motd)).toBeLessThanOrEqual(VIEWPORT_BYTES);
        await talker.close();
      });

      it('pid: "top-level process id when one exists"', async () => {
        expect((await session.send('echo "pid $$"')).text).toContain(`\npid ${session.pid}\n`);
        const exiting = await driver.spawn();
        await exiting.send('exit');
        const listed = (await driver.list()).find(({ id }) => id === exiting.id);
        expect(listed).toBeDefined();
        expect(listed?.pid).toBeUndefined();
        await exiting.close();
      });

      it('startSend: "start one exclusive send operation"', async () => {
        await using program = await heldBack();
        const first = await session.begin(`${program.command.join(' ')}; echo first`);
        expect(await refusal(session.send('echo second'))).toBe('SEND_ACTIVE');
        await program.letGo();
        expect((await first.done).text).toMatch(/\nfirst\n/);
        expect((await session.send('echo third')).text).toMatch(/^echo third\nthird\n/);
      });

      it('read: "read one bounded page from retained scrollback", by "newest-relative offset and line count"', async () => {
        await session.send('clear; seq 1 2000');
        const page = await session.read({ offset: 1, count: 3 });
        expect(page.text).toBe('1998\n1999\n2000\n');
        expect(page).toMatchObject({ lineEnd: page.totalLines - 1, truncated: false });
        expect(page.lineEnd - page.lineBegin).toBe(3);
        const older = await session.read({ offset: 1_001, count: 2 });
        expect(older.text).toBe('999\n1000\n');
        const bounded = await session.read();
        expect(bounded.lineEnd - bounded.lineBegin).toBe(500);
      });

      it('signal: "signal the verified foreground process group"', async () => {
        const send = await session.begin("sh -c 'echo is up; exec sleep 100'");
        await send.printed(/^is up$/m);
        const group = await session.signal('SIGTERM');
        expect(group).toBeGreaterThan(0);
        expect(group).not.toBe(session.pid);
        const { text, status } = await send.done;
        expect(text).toMatch(/Terminated/);
        expect(status).toEqual({ kind: 'running' });
      });

      it('status: "observe top-level process status"', async () => {
        const exiting = await driver.spawn();
        const statusOf = async () =>
          (await driver.list()).find(({ id }) => id === exiting.id)?.status;
        expect(await statusOf()).toEqual({ kind: 'running' });
        await exiting.send('exit 7');
        expect(await statusOf()).toEqual({ kind: 'exited', exitCode: 7, signal: null });
        await exiting.close();
      });

      it('close: "idempotently close the captured owned process tree and await quiescence"', async () => {
        const closing = await driver.spawn();
        await closing.send(`${IGNORES_ITS_END} sleep 1000 &`);
        const answers = await Promise.all([closing.close(), closing.close()]);
        expect(answers.sort()).toEqual([false, true]);
        const ended = (await driver.supervisor.list()).find(
          ({ record }) => record.id === closing.id,
        );
        expect(ended?.record.state).toBe('exited');
      });
    });

    describe('TerminalSendOperation', () => {
      it('done: "resolves after readiness, timeout, cancellation, or top-level process exit"', async () => {
        expect((await session.send('true')).waitReason).toBe('stdin_read');
        const late = await session.send('sleep 1', { timeoutMs: 100 });
        expect(late.waitReason).toBe('timeout');
        expect((await session.send('', { submit: false })).waitReason).toBe('stdin_read');
        const cancelled = await session.begin("sh -c 'echo is up; exec sleep 100'");
        await cancelled.printed(/^is up$/m);
        await cancelled.cancel();
        expect((await cancelled.done).waitReason).toBe('stdin_read');
        const exiting = await driver.spawn();
        expect((await exiting.send('exit')).waitReason).toBe('session_exit');
        await exiting.close();
      });

      it('readOutput: "consume output produced since the prior call"', async () => {
        const send = await session.begin('echo first; sleep 0.5; echo second');
        await send.printed(/^first$/m);
        const { text } = await send.done;
        expect(text).toMatch(/^echo first; sleep 0.5; echo second\nfirst\nsecond\n.*[#$] $/);
      });

      it('cancel: "request SIGINT; returns false after the operation settled"', async () => {
        const send = await session.begin("sh -c 'echo is up; exec sleep 100'");
        await send.printed(/^is up$/m);
        expect(await send.cancel()).toBe(true);
        await send.done;
        expect(await send.cancel()).toBe(false);
        expect((await session.send('echo "code $?"')).text).toMatch(/\ncode 130\n/);
      });
    });

    describe('TerminalSendResult', () => {
      it('viewport: "bounded rendered terminal delta remaining at settlement"', async () => {
        const bar = await session.send('for i in 1 2 3; do printf "\\r%d%%" $i; done; echo');
        expect(bar.text).toMatch(/\n3%\n/);
        expect(bar.text).not.toMatch(/[12]%/);
        const long = await session.send('seq -f %0200g 1 5000');
        expect(Buffer.byteLength(long.viewport)).toBeLessThanOrEqual(VIEWPORT_BYTES);
      });

      it('waitReason: "this does not imply arbitrary child-process exit"', async () => {
        const { waitReason } = await session.send('cat');
        expect(waitReason).not.toBe('session_exit');
        const left = await session.send('\x04', { submit: false });
        expect(left.waitReason).toBe('stdin_read');
      });

      it('sessionStatus: "top-level session status observed at settlement"', async () => {
        expect((await session.send('sh -c "exit 3"')).status).toEqual({ kind: 'running' });
        const exiting = await driver.spawn();
        const { status } = await exiting.send('exit 3');
        expect(status).toEqual({ kind: 'exited', exitCode: 3, signal: null });
        await exiting.close();
      });

      it('truncated: "whether output was dropped", for that answer alone', async () => {
        expect((await session.send('seq 1 100')).truncated).toBe(false);
        expect((await session.send('seq -f %0200g 1 30000')).truncated).toBe(true);
        expect((await session.send('seq 1 100')).truncated).toBe(false);
      });
    });

    describe('TerminalSessionService', () => {
      it('listBackends: "list registered backend types in registration order"', async () => {
        expect(await driver.backends()).toEqual(['shell']);
      });

      it('spawn: "published identity, metadata, status, and MOTD"', async () => {
        const spawned = await driver.spawn({ name: 'fresh', cwd: '/usr' });
        const listed = (await driver.list()).find(({ id }) => id === spawned.id);
        const { id, pid } = spawned;
        const status = { kind: 'running' };
        expect(listed).toEqual({ id, name: 'fresh', type: 'shell', pid, status });
        expect(spawned.motd).not.toBe('');
        expect((await spawned.send('pwd')).text).toMatch(/\n\/usr\n/);
        await spawned.close();
      });

      it('hasOwnerActivity: "true across the entire spawn-to-close interval, with no publication gap"', async () => {
        expect(await driver.hasActivity('worker')).toBe(false);
        const spawning = driver.spawn({ agent: 'worker', env: { PROMPT_COMMAND: 'sleep 0.5' } });
        await until(() => driver.hasActivity('worker'));
        let spawned: DrivenSession | undefined;
        const published = spawning.then((made) => {
          spawned = made;
        });
        while (spawned === undefined) {
          expect(await driver.hasActivity('worker')).toBe(true);
          await pause();
        }
        await published;
        await spawned.send(IGNORES_ITS_END);
        let isClosed = false;
        const closing = spawned.close().then(() => {
          isClosed = true;
        });
        while (!isClosed) {
          const isActive = await driver.hasActivity('worker');
          if (!isActive) await closing;
          expect(isActive || isClosed).toBe(true);
          await pause();
        }
        expect(await driver.hasActivity('worker')).toBe(false);
      });

      it('kill: "remove it only after quiescent backend cleanup"; "true for a newly closed session"', async () => {
        const closing = await driver.spawn({ name: 'closing' });
        await closing.send(IGNORES_ITS_END);
        let isClosed = false;
        const closed = closing.close().finally(() => {
          isClosed = true;
        });
        const ids = async () => (await driver.list()).map(({ id }) => id);
        const listedBefore = await ids();
        expect(isClosed).toBe(false);
        expect(listedBefore).toContain(closing.id);
        expect(await closed).toBe(true);
        expect(await ids()).not.toContain(closing.id);
        expect(await refusal(closing.close())).toBe(driver.codes.NO_SESSION);
        await (await driver.spawn({ name: 'closing' })).close();
      });

      it('list: "owner-visible snapshots in publication order", fresh ones, for exactly one owner', async () => {
        const second = await driver.spawn({ name: 'second' });
        const third = await driver.spawn({ name: 'third' });
        const foreign = await driver.spawn({ name: 'foreign', agent: 'other' });
        const names = async () => (await driver.list()).map(({ name }) => name);
        expect(await names()).toEqual(['main', 'second', 'third']);
        const [first] = await driver.list();
        expect((await driver.list())[0]).not.toBe(first);
        for (const each of [second, third, foreign]) await each.close();
      });
    });

    describe('ownership', () => {
      it('"a time-out or silence may return while the top-level shell goes on running"', async () => {
        const { waitReason, status } = await session.send('sleep 1', { timeoutMs: 100 });
        expect(waitReason).toBe('timeout');
        expect(status).toEqual({ kind: 'running' });
        await session.send('', { submit: false });
      });
    });
  });
}
