import { create } from '@bufbuild/protobuf';
import { terminalRecord } from '../../src/cli/record.js';
import { formatTable } from '../../src/cli/table.js';
import { TerminalTable } from '../../src/cli/terminalTable.js';
import {
  AttachmentKind,
  AttachmentMode,
  ExitReason,
  TerminalSchema,
  TerminalState,
} from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { bashLaunch } from '../../src/session/bashLaunch.js';

const terminal = create(TerminalSchema, {
  ref: { owner: '1000', id: 'terminal-coder-default' },
  agent: 'coder',
  session: 'default',
  state: TerminalState.EXITED,
  command: ['/bin/sh', '-c', 'echo "hi"'],
  cwd: '/workspace',
  size: { columns: 80, rows: 24 },
  createdAt: { seconds: 1735689600n },
  exitStatus: { exitCode: 0 },
  firstSeq: 1n,
  nextSeq: 4n,
  instance: 1,
});

describe('the table of terminals', () => {
  it('aligns its columns', () => {
    const table = new TerminalTable().rows([terminal], new Date((1735689600 + 3_700) * 1000));
    expect(table).toBe(
      [
        'ID                      OWNER  AGENT  SESSION  STATE    EXIT  SIZE   AGE   COMMAND',
        'terminal-coder-default  1000   coder  default  exited   0     80x24  1h1m  /bin/sh -c "echo \\"hi\\""',
      ].join('\n'),
    );
  });

  it('is its head alone where there is none', () => {
    expect(new TerminalTable().rows([], new Date())).toBe(
      'ID  OWNER  AGENT  SESSION  STATE    EXIT  SIZE  AGE  COMMAND',
    );
  });

  it('goes on below with what changes, in the same columns', () => {
    const table = new TerminalTable();
    const now = new Date((1735689600 + 5) * 1000);
    const [, first] = table.rows([terminal], now).split('\n');
    const running = create(TerminalSchema, { ...terminal, state: TerminalState.RUNNING });
    expect(table.row(running, now)).toBe(first?.replace('exited ', 'running'));
    expect(table.removed(terminal.ref)).toBe(
      'terminal-coder-default  1000                   removed',
    );
  });

  it('shows of a session its shell and its name, and of a likeness all', () => {
    const { command } = bashLaunch('5ec2e7', '/bin/bash');
    const shown = (words: readonly string[], name = '') =>
      new TerminalTable()
        .row(create(TerminalSchema, { ...terminal, command: [...words], name }), new Date())
        .replace(/.*80x24 +\S+ +/, '');
    expect(shown(command)).toBe('/bin/bash');
    expect(shown(command, 'build')).toBe('/bin/bash (build)');
    expect(shown([...command, 'x'])).toContain('GRANTTY_SHELL_SETUP');
    expect(shown(['/bin/bash', '-c', `${command[2]}; ls`])).toContain('; ls');
    const record = terminalRecord(create(TerminalSchema, { command: [...command] }));
    expect(record.split('\n')).toContain('command    /bin/bash');
  });

  it('shows no control that a title or command could hold', () => {
    expect(formatTable(['A'], [['x\x1b[31m\r\ny\u202e\u009b']])).toBe(
      'A\nx\ufffd[31m\ufffd\ufffdy\ufffd\ufffd',
    );
  });
});

describe('the record of a terminal', () => {
  it('leaves out what is not there and shows an exit code of 0', () => {
    const lines = terminalRecord(terminal).split('\n');
    expect(lines).toContain('exit       0');
    expect(lines).toContain('events     1-3');
    expect(lines.some((line) => line.startsWith('title'))).toBe(false);
  });

  it('names the signal, and the lack of a code', () => {
    const ended = (exitStatus: { exitCode?: number; signal?: string; reason?: ExitReason }) =>
      terminalRecord(create(TerminalSchema, { ref: { id: 't' }, exitStatus }));
    expect(ended({ exitCode: 143, signal: 'SIGTERM' })).toContain('143 (SIGTERM)');
    const limited = { exitCode: 143, signal: 'SIGTERM', reason: ExitReason.LIFETIME_LIMIT };
    expect(ended(limited)).toContain('143 (SIGTERM), lifetime limit');
    expect(ended({})).toContain('unknown (the supervisor was lost)');
  });

  it('lists who is attached, as what, and since when', () => {
    const attachment = {
      kind: AttachmentKind.HUMAN,
      mode: AttachmentMode.READ_WRITE,
      subject: 'alice',
      actor: 'helper',
      since: { seconds: 1735689600n },
    };
    const record = terminalRecord(
      create(TerminalSchema, { ref: { id: 't' }, attachments: [attachment] }),
    );
    expect(record.split('\n').slice(-2)).toEqual([
      'ATTACHED                  KIND   MODE        SUBJECT  ACTOR',
      '2025-01-01T00:00:00.000Z  human  read/write  alice    helper',
    ]);
  });
});
