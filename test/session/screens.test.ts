import { waitForPattern } from '../../src/session/patternWait.js';
import { Screens } from '../../src/session/screens.js';
import { ScreenWorkers } from '../../src/session/screenWorkers.js';
import type { LiveItem } from '../../src/supervisor/api.js';
import { FakeEvents, screenKey } from './fakeEvents.js';
import { workerEntry } from './liveSessions.js';
import { ManualClock, settled } from './manualClock.js';

let workers: ScreenWorkers;
let source: FakeEvents;
let clock: ManualClock;
let screens: Screens;

beforeEach(() => {
  workers = new ScreenWorkers({ entry: workerEntry, threads: 1 });
  source = new FakeEvents();
  clock = new ManualClock();
  screens = new Screens({ source, workers, clock });
});

afterEach(async () => {
  screens[Symbol.dispose]();
  await workers[Symbol.asyncDispose]();
});

const screen = async () => screens.ask(screenKey, 'screen', { format: 'text' });
const page = async (count = 500) => screens.ask(screenKey, 'page', { count });

/** 64 KiB of lines that end in their number. */
function bulk(number: number): string {
  return `${`${'.'.repeat(1_000)} ${number}\r\n`.repeat(64)}`;
}

describe('the screen of a terminal', () => {
  it('is as of the last event that the log held when it was asked for', async () => {
    source.print('one\r\n');
    expect(await screen()).toMatchObject({ screen: 'one\n\n\n\n\n', throughSeq: 1 });
    source.print('two');
    expect(await screen()).toMatchObject({ screen: 'one\ntwo\n\n\n\n', throughSeq: 2 });
  });

  it('of an exited terminal can be asked for too', async () => {
    source.print('bye');
    source.exit();
    expect(await screen()).toMatchObject({ throughSeq: 2 });
    expect((await page()).text).toBe('bye\n');
  });

  it('of one that printed nothing is empty', async () => {
    expect(await screen()).toMatchObject({ screen: '\n\n\n\n\n', throughSeq: 0 });
    expect(await page()).toMatchObject({ text: '\n', totalLines: 1 });
  });

  it('has the terminal’s size though nothing was printed since it changed', async () => {
    source.print('x');
    await screen();
    source.size = { cols: 30, rows: 7 };
    screens[Symbol.dispose]();
    expect((await screen()).size).toEqual({ cols: 30, rows: 7 });
  });

  it('costs the last 4 MiB of a longer log, and says from where output was left out', async () => {
    for (let number = 1; number <= 100; number += 1) source.print(bulk(number));
    const answer = await screen();
    expect(answer.screen).toContain(' 100\n');
    expect(answer.skippedFromSeq).toBe(1);
    expect(source.follows[0]).toBeGreaterThan(30);
  });

  it('of a long log is rendered from its last lines, and its lines from the last 4 MiB', async () => {
    const lines = Array.from({ length: 9_000 }, (_, at) => `${'.'.repeat(1_000)} ${at}\r\n`);
    source.print('\x1b[?2004h\x1b]2;title\x07');
    for (let at = 0; at < lines.length; at += 60) source.print(lines.slice(at, at + 60).join(''));
    const alone = await screen();
    expect(alone).toMatchObject({ skippedFromSeq: 1, throughSeq: source.nextSeq - 1 });
    const whole = await page(500);
    expect(whole.totalLines).toBeGreaterThan(3_000);
    expect(whole.text).toMatch(/^\.+ 87\d\d\n/);
    expect(whole.text.endsWith(` 8998\n${lines[8999]?.replace('\r', '')}\n`)).toBe(true);
    expect(source.follows).toHaveLength(2);
    expect(await screen()).toEqual(alone);
    source.print('more');
    expect((await page(1)).text).toBe('more\n');
    expect(source.follows).toHaveLength(2);
  });

  it('keeps the modes that output which is left out has set', async () => {
    for (let number = 1; number <= 10; number += 1) source.print(bulk(number));
    source.print('\x1b[?1h\x1b]2;title\x07');
    for (let number = 1; number <= 60; number += 1) source.print(bulk(number));
    const answer = await screen();
    expect(answer).toMatchObject({ skippedFromSeq: 1, title: 'title' });
    expect(answer.modes.applicationCursorKeys).toBe(true);
    expect(answer.screen).toContain(' 60\n');
  });

  it('left behind in a flood skips ahead, keeps the modes, and says so', async () => {
    source.print('\x1b[?1h\x1b[?2004h');
    await screen();
    for (let number = 1; number <= 200; number += 1) source.print(bulk(number));
    const answer = await page(1);
    expect(answer.skippedFromSeq).toBe(2);
    expect(answer.throughSeq).toBe(201);
    expect((await screen()).modes).toEqual({ applicationCursorKeys: true, bracketedPaste: true });
  });

  it('finds text by a pattern, and refuses one that is none', async () => {
    source.print('needle in hay\r\n');
    const found = await screens.ask(screenKey, 'find', { pattern: 'n\\w+e' });
    expect(found).toMatchObject({ matches: [{ line: 0, matched: 'needle' }], throughSeq: 1 });
    await expect(screens.ask(screenKey, 'find', { pattern: '(' })).rejects.toMatchObject({
      reason: 'FIELD_INVALID',
      violations: [{ field: 'pattern' }],
    });
  });

  it('is not held up by what another terminal prints', async () => {
    const other = new FakeEvents();
    for (let number = 1; number <= 64; number += 1) other.print(bulk(number));
    using others = new Screens({ source: other, workers, clock });
    const busy = others.ask(screenKey, 'screen', { format: 'text' });
    source.print('quick');
    const first = await Promise.race([busy.then(() => 'busy'), screen().then(() => 'quick')]);
    expect(first).toBe('quick');
    await busy;
  });
});

describe('a screen that nobody asks for', () => {
  it('stops following its terminal after a minute, and goes on from where it was', async () => {
    source.print('one\r\n');
    await screen();
    await clock.advance(59_000);
    expect(source.following).toBe(1);
    await clock.advance(1_000);
    await settled();
    expect(source.following).toBe(0);
    source.print('two');
    expect(await screen()).toMatchObject({ screen: 'one\ntwo\n\n\n\n', throughSeq: 2 });
    expect(source.follows).toEqual([1, 2]);
  });

  it('that has fallen behind by more than 4 MiB meanwhile skips ahead', async () => {
    source.print('\x1b[?2004hone\r\n');
    await screen();
    await clock.advance(60_000);
    for (let number = 1; number <= 100; number += 1) source.print(bulk(number));
    const answer = await screen();
    expect(answer).toMatchObject({ skippedFromSeq: 2, throughSeq: 101 });
    expect(answer.modes.bracketedPaste).toBe(true);
  });
});

describe('a screen whose worker is lost', () => {
  /** A worker that ends when it is asked to find `die`. */
  const mortal = new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort } from 'node:worker_threads';
      import '${workerEntry.href}';
      parentPort.on('message', ({ ask }) => { if (ask?.pattern === 'die') process.exit(1); });
    `)}`,
  );

  beforeEach(async () => {
    await workers[Symbol.asyncDispose]();
    workers = new ScreenWorkers({ entry: mortal, threads: 1 });
    screens = new Screens({ source, workers, clock });
  });

  it('is built anew from the log', async () => {
    source.print('one\r\n');
    await expect(screens.ask(screenKey, 'find', { pattern: 'die' })).rejects.toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
    });
    expect(await screen()).toMatchObject({ screen: 'one\n\n\n\n\n', throughSeq: 1 });
  });

  it('shows its observer no event twice', async () => {
    const seqs: number[] = [];
    const item = (each: LiveItem) => {
      if (each.kind === 'events') seqs.push(...each.events.map(({ seq }) => seq));
    };
    source.print('one\r\n');
    const { screen: observed, mirror } = screens.observe(screenKey, {
      item,
      rendered: () => {},
      failed: () => {},
    });
    await observed.through(1);
    await expect(screens.ask(screenKey, 'find', { pattern: 'die' })).rejects.toThrow();
    source.print('two');
    await observed.through(2);
    expect(mirror.normal).toEqual(['one', 'two']);
    expect(seqs).toEqual([1, 2]);
  });

  it('is given up when no worker starts', async () => {
    await using broken = new ScreenWorkers({ entry: new URL('data:text/javascript,throw 1') });
    using lost = new Screens({ source, workers: broken, clock });
    await expect(lost.ask(screenKey, 'screen', { format: 'text' })).rejects.toMatchObject({
      reason: 'SUPERVISOR_UNAVAILABLE',
    });
  });
});

describe('an observer', () => {
  it('sees every event once, in order, and a mirror of the lines', async () => {
    const seqs: number[] = [];
    const item = (each: LiveItem) => {
      if (each.kind === 'events') seqs.push(...each.events.map(({ seq }) => seq));
    };
    source.print('one\r\n');
    const { screen: observed, mirror } = screens.observe(screenKey, {
      item,
      rendered: () => {},
      failed: () => {},
    });
    await observed.through(1);
    source.print('two');
    await observed.through(2);
    expect(seqs).toEqual([1, 2]);
    expect(mirror.normal).toEqual(['one', 'two']);
    expect(await screen()).toMatchObject({ throughSeq: 2 });
    screens.release(observed);
    await settled();
    expect(source.following).toBe(0);
  });

  it('is told when the terminal is deleted, and waiters are too', async () => {
    const failures: unknown[] = [];
    const { screen: observed } = screens.observe(screenKey, {
      item: () => {},
      rendered: () => {},
      failed: (error) => failures.push(error),
    });
    const waiting = observed.through(5);
    source.delete();
    await expect(waiting).rejects.toMatchObject({ reason: 'TERMINAL_NOT_FOUND' });
    expect(failures).toMatchObject([{ reason: 'TERMINAL_NOT_FOUND' }]);
  });
});

describe('a wait for a pattern', () => {
  const wait = (pattern: string, afterSeq = 0, signal = new AbortController().signal) =>
    waitForPattern(source, workers, { key: screenKey, pattern, afterSeq, signal });

  it('gives the seq of the event that completed it', async () => {
    source.print('noise\r\nserver li');
    const waiting = wait('listening on \\d+');
    source.print('stening on 80');
    source.print('80\r\n');
    expect(await waiting).toEqual({ kind: 'matched', seq: 2 });
  });

  it('counts only output after the given seq', async () => {
    source.print('ready\r\n');
    source.print('other\r\n');
    const waiting = wait('ready', 1);
    source.print('ready\r\n');
    expect(await waiting).toEqual({ kind: 'matched', seq: 3 });
  });

  it('misses nothing in a flood', async () => {
    for (let number = 1; number <= 100; number += 1) source.print(bulk(number));
    expect(await wait('^\\.{1000} 37$')).toEqual({ kind: 'matched', seq: 37 });
  });

  it('ends with the process', async () => {
    source.print('x');
    const waiting = wait('never');
    source.exit(3);
    expect(await waiting).toEqual({ kind: 'exited', seq: 2 });
  });

  it('ends when the terminal is deleted', async () => {
    const waiting = wait('never');
    await settled();
    source.delete();
    expect(await waiting).toEqual({ kind: 'deleted' });
  });

  it('ends with its signal’s reason', async () => {
    const controller = new AbortController();
    const waiting = wait('never', 0, controller.signal);
    const reason = new Error('deadline');
    controller.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  it('refuses a pattern that is none', async () => {
    await expect(wait('[')).rejects.toMatchObject({ reason: 'FIELD_INVALID' });
  });
});
