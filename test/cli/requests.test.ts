import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  toJson,
} from '@bufbuild/protobuf';
import { jest } from '@jest/globals';
import { UsageError } from '../../src/cli/exitCode.js';
import { program } from '../../src/cli/program.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import { ExitReason, type ExitStatusSchema } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import {
  CreateTerminalRequestSchema,
  DeleteTerminalRequestSchema,
  KillRequestSchema,
  ListTerminalsRequestSchema,
  ResizeRequestSchema,
  SignalRequestSchema,
  StartTerminalRequestSchema,
  StopRequestSchema,
  UpdateTerminalRequestSchema,
  WaitOutcome,
  WaitRequestSchema,
  WatchRequestSchema,
  WatchResponseSchema,
  WatchTerminalsRequestSchema,
  WriteRequestSchema,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import {
  certificates,
  type FakeServer,
  failure,
  fakeServer,
  responseOf,
  status,
} from '../client/fakeServer.js';

let server: FakeServer;
let dir: string;
const requests: { method: string; request: unknown }[] = [];
const answers = new Map<string, unknown>();
/** What watchTerminals tells before it ends. */
const terminalsEvents = [
  { case: 'snapshot', value: { terminal: { ref: { id: 't1' } } } },
  { case: 'snapshotEnd', value: { cursor: 'c1' } },
  { case: 'changed', value: { terminal: { ref: { id: 't2' } }, cursor: 'c2' } },
  { case: 'removed', value: { ref: { id: 't1' }, cursor: 'c3' } },
];
let printed = '';
/** How the terminal ended that is watched or attached to. */
let exit: MessageInitShape<typeof ExitStatusSchema>;

function unary(method: string) {
  return (
    call: { request: unknown },
    callback: (error: Error | null, response?: unknown) => void,
  ) => {
    requests.push({ method, request: call.request });
    const answer = answers.get(method) ?? {};
    if (answer instanceof Error) callback(answer);
    else callback(null, answer);
  };
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'grantty-cli-'));
  await writeFile(join(dir, 'ca.pem'), certificates.ca);
  await writeFile(join(dir, 'token'), 'the-token\n');
  const methods = [
    'createTerminal',
    'getTerminal',
    'listTerminals',
    'write',
    'resize',
    'signal',
    'stop',
    'kill',
    'wait',
    'startTerminal',
    'updateTerminal',
    'deleteTerminal',
  ];
  server = await fakeServer({
    ...Object.fromEntries(methods.map((method) => [method, unary(method)])),
    watch: (call) => {
      requests.push({ method: 'watch', request: call.request });
      for (const event of [
        { case: 'exited', value: { seq: 1n, status: exit } },
        { case: 'closing', value: { reason: ClosingReason.EXITED } },
      ] as const) {
        call.write(create(WatchResponseSchema, { event }));
      }
      call.end();
    },
    watchTerminals: (call) => {
      requests.push({ method: 'watchTerminals', request: call.request });
      for (const event of terminalsEvents) call.write({ event });
      call.end();
    },
    attach: (call) => {
      call.on('error', () => {});
      call.write(responseOf({ case: 'started', value: { nextSeq: 1n } }));
      call.write(responseOf({ case: 'exited', value: { seq: 1n, status: exit } }));
      call.end();
    },
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(dir, { recursive: true });
});

beforeEach(() => {
  requests.length = 0;
  answers.clear();
  printed = '';
  exit = { exitCode: 4 };
  const take = (text: unknown) => {
    printed += text;
    return true;
  };
  jest.spyOn(process.stdout, 'write').mockImplementation(take);
  jest.spyOn(process.stderr, 'write').mockImplementation(take);
});

afterEach(() => {
  jest.restoreAllMocks();
  process.exitCode = undefined;
});

/** Runs a command line in this process; gives its exit code. */
async function ctx(...args: string[]): Promise<unknown> {
  const connection = [
    '--address',
    server.address,
    '--ca',
    join(dir, 'ca.pem'),
    '--token-file',
    join(dir, 'token'),
  ];
  const at = args.indexOf('--');
  const before = at < 0 ? args : args.slice(0, at);
  const after = at < 0 ? [] : args.slice(at);
  await program().parseAsync(['node', 'ctx', ...before, ...connection, ...after]);
  return process.exitCode;
}

function sent<D extends DescMessage>(schema: D): unknown {
  expect(requests).toHaveLength(1);
  return toJson(schema, requests[0]?.request as MessageShape<D>);
}

describe('a command line', () => {
  it('asks for nothing that it does not name', async () => {
    answers.set('createTerminal', { terminal: { ref: { id: 'terminal-coder-default' } } });
    await ctx('terminal', 'create', 'coder');
    expect(sent(CreateTerminalRequestSchema)).toEqual({ agent: 'coder' });
    expect(printed).toBe('terminal-coder-default\n');
  });

  it('names everything of a new terminal, and leaves the command as it is', async () => {
    answers.set('createTerminal', { terminal: { ref: { id: 't1' } } });
    await ctx(
      ...['terminal', 'create', 'coder', '--session', 's', '--id', 't1', '--cwd', '/w'],
      ...['--env', 'A=1', '--env', 'B=x=y', '--size', '100x30', '--label', 'k=v', '--title', 'T'],
      ...['--owner', '1000', '--', 'make', '--version', '-k', '--'],
    );
    expect(sent(CreateTerminalRequestSchema)).toEqual({
      owner: '1000',
      agent: 'coder',
      session: 's',
      id: 't1',
      command: ['make', '--version', '-k', '--'],
      cwd: '/w',
      env: { A: '1', B: 'x=y' },
      size: { columns: 100, rows: 30 },
      title: 'T',
      labels: { k: 'v' },
    });
  });

  it('lists by agent, session, states and labels, page after page', async () => {
    answers.set('listTerminals', { terminals: [{ ref: { id: 't1' } }] });
    await ctx(
      ...['terminal', 'ls', '--agent', 'a', '--session', 's', '--state', 'running', 'exited'],
      ...['--label', 'k=v', '--owner', '7', '--json'],
    );
    expect(sent(ListTerminalsRequestSchema)).toEqual({
      filter: {
        owner: '7',
        agent: 'a',
        session: 's',
        states: ['TERMINAL_STATE_RUNNING', 'TERMINAL_STATE_EXITED'],
        labels: { k: 'v' },
      },
    });
    expect(printed).toBe('{"ref":{"id":"t1"}}\n');
  });

  it('lists ids alone', async () => {
    answers.set('listTerminals', { terminals: [{ ref: { id: 't1' } }, { ref: { id: 't2' } }] });
    await ctx('terminal', 'ls', '-q');
    expect(printed).toBe('t1\nt2\n');
  });

  it('lists and goes on with what changes, for people', async () => {
    await ctx('terminal', 'list', '--watch', '--agent', 'a');
    expect(sent(WatchTerminalsRequestSchema)).toEqual({ filter: { agent: 'a' } });
    expect(printed.split('\n').map((line) => line.split(/ +/)[0])).toEqual([
      'ID',
      't1',
      't2',
      't1',
      '',
    ]);
    expect(printed).toMatch(/^t1 .*removed$/m);
  });

  it('lists and goes on with what changes, one event a line', async () => {
    await ctx('terminal', 'list', '--watch', '--json');
    const events = printed
      .trimEnd()
      .split('\n')
      .map((line) => Object.keys(JSON.parse(line)));
    expect(events).toEqual([['snapshot'], ['snapshotEnd'], ['changed'], ['removed']]);
  });

  it('starts again, and prints the id', async () => {
    answers.set('startTerminal', { terminal: { ref: { id: 't' } } });
    await ctx('terminal', 'start', 't', '--size', '100x30');
    expect(sent(StartTerminalRequestSchema)).toEqual({
      terminal: { id: 't' },
      size: { columns: 100, rows: 30 },
    });
    expect(printed).toBe('t\n');
  });

  it.each([
    [[], {}],
    [['--uid', 'u1'], { uid: 'u1' }],
  ])('deletes with %j', async (flags, request) => {
    await ctx('terminal', 'rm', 't', ...flags);
    expect(sent(DeleteTerminalRequestSchema)).toEqual({ terminal: { id: 't' }, ...request });
    expect(printed).toBe('');
  });

  it.each([
    [['--title', ''], { title: '' }],
    [['--label', 'a=1', '--label', 'b='], { labels: { entries: { a: '1', b: '' } } }],
    [['--clear-labels'], { labels: {} }],
  ])('updates with %j', async (flags, request) => {
    await ctx('terminal', 'update', 't', ...flags);
    expect(sent(UpdateTerminalRequestSchema)).toEqual({ terminal: { id: 't' }, ...request });
  });

  it.each([
    ['gone afterwards with --rm', ['--rm'], 4, ['createTerminal', 'deleteTerminal']],
    ['left alone without', [], 4, ['createTerminal']],
  ])('runs a command whose terminal is %s', async (_, flags, code, methods) => {
    answers.set('createTerminal', { terminal: { ref: { id: 't', owner: '7' }, uid: 'u' } });
    expect(await ctx('terminal', 'run', 'a', ...flags, '--', 'true')).toBe(code);
    expect(requests.map(({ method }) => method)).toEqual(methods);
  });

  it("keeps the command's code where the terminal cannot be deleted, and says so", async () => {
    answers.set('createTerminal', { terminal: { ref: { id: 't', owner: '7' }, uid: 'u' } });
    answers.set('deleteTerminal', failure({ code: status.PERMISSION_DENIED }));
    expect(await ctx('terminal', 'run', 'a', '--rm', '--', 'true')).toBe(4);
    expect(printed).toContain('PERMISSION_DENIED');
  });

  it.each([
    [['--after-seq', '5'], { after: { afterSeq: '5' }, follow: true }],
    [['--tail-bytes', '100'], { tailBytes: '100', follow: true }],
    [['--live'], { live: true, follow: true }],
    [['--no-follow'], { follow: false }],
  ])('watches with %j', async (flags, request) => {
    await ctx('terminal', 'watch', 't', ...flags);
    expect(sent(WatchRequestSchema)).toEqual({ terminal: { id: 't' }, ...request });
  });

  it('logs is another name of watch', async () => {
    await ctx('terminal', 'logs', 't', '--no-follow');
    expect(sent(WatchRequestSchema)).toEqual({ terminal: { id: 't' }, follow: false });
  });

  it.each([
    [['--text', 'ls\n'], 'ls\n'],
    [['--keys', 'C-c,Up'], '\x03\x1b[A'],
    [['--text', 'a\x1b[201~b', '--paste'], '\x1b[200~ab\x1b[201~'],
  ])('writes with %j', async (flags, text) => {
    await ctx('terminal', 'write', 't', ...flags);
    expect(sent(WriteRequestSchema)).toEqual({
      terminal: { id: 't' },
      data: Buffer.from(text).toString('base64'),
    });
  });

  it('writes long text in frames that the server takes', async () => {
    await ctx('terminal', 'write', 't', '--text', 'x'.repeat(150_000));
    const sizes = requests.map(({ request }) => (request as { data: Uint8Array }).data.length);
    expect(sizes).toEqual([65_536, 65_536, 18_928]);
  });

  it.each([
    [['wait', 't'], 143],
    [['wait', 't', '--pattern', 'x'], 1],
  ])('says with %j which limit ended the terminal', async (args, code) => {
    const exitStatus = { exitCode: 143, signal: 'SIGTERM', reason: ExitReason.IDLE_LIMIT };
    answers.set('wait', { outcome: WaitOutcome.EXIT, exitStatus });
    expect(await ctx('terminal', ...args)).toBe(code);
    expect(printed).toContain('the supervisor ended the terminal: nobody had used it');
    expect(printed).toContain('(idle limit)');
  });

  it.each([
    [['watch', 't'], undefined],
    [['attach', 't'], 137],
  ])('says with %j that the supervisor ended it with itself', async (args, code) => {
    exit = { exitCode: 137, reason: ExitReason.SUPERVISOR_STOPPED };
    expect(await ctx('terminal', ...args)).toBe(code ?? 0);
    expect(printed).toContain('the supervisor ended the terminal: it was told to end itself');
  });

  it('resizes', async () => {
    await ctx('terminal', 'resize', 't', '120x40');
    expect(sent(ResizeRequestSchema)).toEqual({
      terminal: { id: 't' },
      size: { columns: 120, rows: 40 },
    });
  });

  it.each(['INT', 'SIGINT', 'sigint'])('signals %s', async (name) => {
    await ctx('terminal', 'signal', 't', name);
    expect(sent(SignalRequestSchema)).toEqual({ terminal: { id: 't' }, signal: 'SIGNAL_INT' });
  });

  it('stops with a grace, and fails while something lives', async () => {
    answers.set('stop', { survivors: [{ pid: 42, command: 'sleep' }], quiescent: false });
    expect(await ctx('terminal', 'stop', 't', '--grace', '1500ms')).toBe(1);
    expect(sent(StopRequestSchema)).toEqual({ terminal: { id: 't' }, grace: '1.500s' });
    expect(printed).toContain('42 (sleep)');
  });

  it('kills', async () => {
    answers.set('kill', { quiescent: true });
    expect(await ctx('terminal', 'kill', 't')).toBe(0);
    expect(sent(KillRequestSchema)).toEqual({ terminal: { id: 't' } });
  });

  it("waits for the exit and exits with the process's code", async () => {
    answers.set('wait', { exitStatus: { exitCode: 3 } });
    expect(await ctx('terminal', 'wait', 't', '--exit', '--after-seq', '2')).toBe(3);
    expect(sent(WaitRequestSchema)).toEqual({
      terminal: { id: 't' },
      exit: true,
      afterSeq: '2',
    });
  });

  it.each([
    [status.PERMISSION_DENIED, 255],
    [status.DEADLINE_EXCEEDED, 124],
  ])('waits, and exits on status %d with %d', async (code, expected) => {
    answers.set('wait', failure({ code }));
    expect(await ctx('terminal', 'wait', 't', '--exit')).toBe(expected);
  });

  it.each([
    [['--idle', '2s'], { idle: '2s' }],
    [['--pattern', 'done\\s', '--after-seq', '3'], { pattern: 'done\\s', afterSeq: '3' }],
  ])('waits with %j', async (flags, request) => {
    answers.set('wait', { outcome: WaitOutcome.PATTERN, matchedSeq: 5n });
    expect(await ctx('terminal', 'wait', 't', ...flags, '--json')).toBe(0);
    expect(sent(WaitRequestSchema)).toEqual({ terminal: { id: 't' }, ...request });
    expect(JSON.parse(printed)).toEqual({ outcome: 'WAIT_OUTCOME_PATTERN', matchedSeq: '5' });
  });

  it('exits with 1 where the process exits before what was waited for', async () => {
    answers.set('wait', { outcome: WaitOutcome.EXIT, exitStatus: { exitCode: 0 } });
    expect(await ctx('terminal', 'wait', 't', '--pattern', 'x')).toBe(1);
  });

  it.each([
    [status.DEADLINE_EXCEEDED, 'DEADLINE_EXCEEDED'],
    [status.PERMISSION_DENIED, 'PERMISSION_DENIED'],
  ])('leaves status %d of a wait for silence to the usual exit codes', async (code, name) => {
    answers.set('wait', failure({ code }));
    await expect(ctx('terminal', 'wait', 't', '--idle', '1s')).rejects.toMatchObject({
      code: name,
    });
  });

  it('exits with 255 where nobody knows the code', async () => {
    answers.set('wait', { exitStatus: {} });
    expect(await ctx('terminal', 'wait', 't')).toBe(255);
  });

  it('shows a record as JSON in the mapping of the contract', async () => {
    answers.set('getTerminal', { terminal: { ref: { id: 't' }, nextSeq: 9007199254740993n } });
    await ctx('terminal', 'status', 't', '--json');
    expect(JSON.parse(printed)).toEqual({ ref: { id: 't' }, nextSeq: '9007199254740993' });
  });
});

describe('a wrong command line', () => {
  it.each([
    [['terminal', 'create']],
    [['terminal', 'nothing']],
    [['terminal', 'status', 'a', 'b']],
    [['terminal', 'list', '--state', 'dead']],
    [['terminal', 'watch', 't', '--after-seq', '1', '--live']],
    [['terminal', 'watch', 't', '--tail-bytes', '1', '--after-seq', '1']],
    [['terminal', 'write', 't', '--text', 'a', '--keys', 'b']],
    [['terminal', 'wait', 't', '--exit', '--idle', '1s']],
    [['terminal', 'wait', 't', '--pattern', 'x', '--idle', '1s']],
    [['terminal', 'list', '-q', '--json']],
    [['terminal', 'update', 't', '--label', 'a=1', '--clear-labels']],
    [['terminal', 'write', 't', '--keys', 'b', '--paste']],
  ])('%j is told by the parser', async (args) => {
    await expect(ctx(...args)).rejects.toMatchObject({ name: 'CommanderError' });
    expect(requests).toEqual([]);
  });

  it.each([
    [['terminal', 'create', 'a', '--size', '80']],
    [['terminal', 'create', 'a', '--env', 'A']],
    [['terminal', 'watch', 't', '--live', '--no-follow']],
    [['terminal', 'watch', 't', '--after-seq', '-1']],
    [['terminal', 'write', 't', '--keys', 'Nope']],
    [['terminal', 'signal', 't', 'RTMIN']],
    [['terminal', 'update', 't']],
    [['terminal', 'update', 't', '--label', 'a']],
    [['terminal', 'stop', 't', '--grace', 'long']],
    [['terminal', 'attach', 't', '--detach-keys', 'ctrl-']],
  ])('%j is a usage error, and nothing is sent', async (args) => {
    await expect(ctx(...args)).rejects.toThrow(UsageError);
    expect(requests).toEqual([]);
  });
});
