import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { status } from '@grpc/grpc-js';
import type { Name } from '../../src/core/names.js';
import { WaitOutcome } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import type { FakeTerminal } from '../support/fakeSupervisor.js';
import { detailsOf, failureOf, Harness, terminals } from './harness.js';

type Request = MessageInitShape<typeof terminals.wait.input>;
type Condition = NonNullable<Request['condition']>;

const exit: Condition = { case: 'exit', value: true };
const pattern = (value: string): Condition => ({ case: 'pattern', value });
const idle = (ms: number): Condition => ({ case: 'idle', value: durationFromMs(ms) });

describe('Wait', () => {
  let harness: Harness;
  let terminal: FakeTerminal;
  let token: string;
  beforeEach(async () => {
    harness = await Harness.start();
    terminal = await harness.supervisor.add({ id: 't1' as Name });
    token = await harness.token([{ actions: ['terminal.read'] }]);
  });
  afterEach(() => harness[Symbol.asyncDispose]());

  const wait = (condition: Condition, rest: { afterSeq?: bigint } = {}, options = {}) =>
    harness.unary(
      terminals.wait,
      { terminal: { owner: '1000', id: 't1' }, condition, ...rest },
      token,
      options,
    );

  /** Once the server follows the terminal's output. */
  async function following(): Promise<void> {
    while (harness.server.load.watchedTerminals === 0) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Once the server waits for the exit itself. */
  async function awaitingExit(): Promise<void> {
    while (!harness.supervisor.calls.some(({ method }) => method === 'exited')) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  async function timersSet(count: number): Promise<void> {
    while (harness.clock.timersSet < count) await new Promise((resolve) => setImmediate(resolve));
  }

  it('answers at once for a terminal that has exited, with its code', async () => {
    await terminal.print('x');
    await terminal.exit({ exitCode: 3 });
    expect(await wait(exit)).toMatchObject({
      outcome: WaitOutcome.EXIT,
      matchedSeq: 2n,
      exitStatus: { exitCode: 3 },
      lastSeq: 2n,
    });
  });

  it('waits for the exit of a terminal that runs', async () => {
    const waited = wait(exit);
    await awaitingExit();
    await terminal.print('x');
    await terminal.exit({ exitCode: 0 });
    expect(await waited).toMatchObject({
      outcome: WaitOutcome.EXIT,
      matchedSeq: 2n,
      exitStatus: { exitCode: 0 },
    });
  });

  it('asks for no output to learn of an exit', async () => {
    const waited = wait(exit);
    await awaitingExit();
    expect(harness.server.load.watchedTerminals).toBe(0);
    await terminal.exit({ exitCode: 4 });
    expect((await waited).exitStatus?.exitCode).toBe(4);
    expect(harness.server.load.watchedTerminals).toBe(0);
  });

  it('tells the exit that it waited for, though the terminal has been started again since', async () => {
    const { supervisor } = harness;
    const exited = supervisor.exited.bind(supervisor);
    supervisor.exited = async (key, signal) => {
      await exited(key, signal);
      await supervisor.start({ owner: '1000' as Name, id: 't1' as Name }, {});
      return terminal.snapshot();
    };
    const waited = wait(exit);
    await awaitingExit();
    await terminal.exit({ exitCode: 5 });
    expect(await waited).toMatchObject({
      outcome: WaitOutcome.EXIT,
      matchedSeq: 1n,
      exitStatus: { exitCode: 5 },
    });
  });

  it('takes the first exit after the given place', async () => {
    await terminal.exit({ exitCode: 1 });
    await harness.supervisor.start({ owner: '1000' as Name, id: 't1' as Name }, {});
    expect((await wait(exit, { afterSeq: 0n })).exitStatus?.exitCode).toBe(1);
    const second = wait(exit, { afterSeq: 1n });
    await following();
    await terminal.append([
      { type: 'process.exit', seq: 2, timeMicros: 1, exitCode: 2, instance: 2 },
    ]);
    expect((await second).exitStatus?.exitCode).toBe(2);
  });

  it.each([
    ['an exit', exit],
    ['a pattern', pattern('never')],
    ['rest', idle(1_000)],
  ])('for %s ends at once after the last event of a terminal that has exited', async (_, what) => {
    await terminal.print('x');
    await terminal.exit({ exitCode: 3 });
    expect(await wait(what, { afterSeq: 2n })).toMatchObject({
      outcome: WaitOutcome.EXIT,
      matchedSeq: 2n,
      exitStatus: { exitCode: 3 },
    });
  });

  it('finds a pattern in what was printed, over the borders of events and characters', async () => {
    const text = Buffer.from('ready: grün!');
    await terminal.print('boot ', text.subarray(0, 10), text.subarray(10), ' tail');
    expect(await wait(pattern('re.dy: grün'))).toMatchObject({
      outcome: WaitOutcome.PATTERN,
      matchedSeq: 3n,
    });
  });

  it('finds a pattern in what will be printed, and looks after the given place only', async () => {
    await terminal.print('$ ');
    const waited = wait(pattern('\\$ $'), { afterSeq: 1n });
    await following();
    await terminal.print('make\r\n');
    await terminal.print('done\r\n', '$ ');
    expect(await waited).toMatchObject({ outcome: WaitOutcome.PATTERN, matchedSeq: 4n });
  });

  it('ends with the exit when the pattern has not shown', async () => {
    const waited = wait(pattern('never'));
    await following();
    await terminal.print('x');
    await terminal.exit({ exitCode: 9 });
    expect(await waited).toMatchObject({
      outcome: WaitOutcome.EXIT,
      exitStatus: { exitCode: 9 },
    });
  });

  it('passes over the exit of an earlier instance when it looks for a pattern', async () => {
    await terminal.exit();
    await harness.supervisor.start({ owner: '1000' as Name, id: 't1' as Name }, {});
    await terminal.print('second life');
    expect(await wait(pattern('life'))).toMatchObject({ outcome: WaitOutcome.PATTERN });
  });

  it('counts rest from its own arrival, and anew from each output', async () => {
    await terminal.print('old');
    let done = false;
    const waited = wait(idle(2_000)).then((answer) => {
      done = true;
      return answer;
    });
    // One timer for the end of the token, one for the rest.
    await timersSet(2);
    harness.clock.advance(1_999);
    await terminal.print('new');
    await timersSet(3);
    harness.clock.advance(1_999);
    await new Promise((resolve) => setImmediate(resolve));
    expect(done).toBe(false);
    harness.clock.advance(1);
    const answer = await waited;
    expect(answer).toMatchObject({ outcome: WaitOutcome.IDLE, lastSeq: 2n });
    expect(answer.matchedSeq).toBeUndefined();
  });

  it.each([
    ['condition', undefined],
    ['exit', { case: 'exit', value: false }],
    ['idle', idle(0)],
    ['idle', idle(3_600_001)],
    ['pattern', pattern('')],
    ['pattern', pattern('(')],
    ['pattern', pattern('(?=x)')],
    ['pattern', pattern('x'.repeat(1025))],
    ['pattern', pattern('((((x{30}){30})y{30}){30})')],
  ] as [string, Condition | undefined][])('refuses a bad %s', async (field, condition) => {
    const error = await failureOf(wait(condition ?? { case: undefined }));
    expect(error.code).toBe(status.INVALID_ARGUMENT);
    expect(detailsOf(error).badRequest?.fieldViolations[0]?.field).toBe(field);
  });

  it('says DEADLINE_EXCEEDED when nothing was met in time, and forgets the wait', async () => {
    const error = await failureOf(wait(exit, {}, { deadline: Date.now() + 100 }));
    expect(error.code).toBe(status.DEADLINE_EXCEEDED);
    while (harness.server.load.streams > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(harness.server.load.watchedTerminals).toBe(0);
    expect(harness.clock.timers).toBe(0);
    expect(harness.logged).toEqual([]);
  });

  it('ends with its authority', async () => {
    const waited = failureOf(wait(exit));
    await awaitingExit();
    // A little past its end, as it looks again every 15 s.
    for (let seconds = 0; seconds <= 600; seconds += 15) {
      harness.clock.advance(15_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(detailsOf(await waited).info?.reason).toBe('TOKEN_EXPIRED');
  });

  it('ends within 15 s when the clock is set past the end of the token', async () => {
    const waited = failureOf(wait(exit));
    await awaitingExit();
    harness.clock.set(3_600_000);
    harness.clock.advance(15_000);
    expect(detailsOf(await waited).info?.reason).toBe('TOKEN_EXPIRED');
  });
});
