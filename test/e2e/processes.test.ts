import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '../../src/client/connect.js';
import { TerminalState } from '../../src/gen/public/grantty/v1/terminal_pb.js';
import { scanProcesses } from '../../src/pty/processTable.js';
import { owner } from '../support/registry.js';
import { startService, type TestService } from '../support/service.js';
import { watchAll } from '../support/streams.js';

describe('processes, over TLS', () => {
  let service: TestService;
  let client: Client;

  beforeAll(async () => {
    service = await startService();
    client = service.client();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  it('kills a shell with background jobs, one of them nohup, one in a session of its own, and says that all are gone (case 23)', async () => {
    const terminal = { id: 'jobs' };
    const script = `sleep 1000 & a=$!
      nohup sleep 1000 > /dev/null 2>&1 & b=$!
      setsid sh -c 'echo $$ > "$0"; exec sleep 1000' ${service.stateDir}/escaped &
      (sleep 1000 &)
      until [ -s ${service.stateDir}/escaped ]; do sleep 0.01; done
      echo jobs $$ $a $b $(cat ${service.stateDir}/escaped) ready
      wait`;
    await client.terminals.createTerminal({
      agent: 'coder',
      ...terminal,
      command: ['bash', '-c', script],
    });
    await client.terminals.wait({ terminal, condition: { case: 'pattern', value: 'ready' } });
    const record = await client.terminals.getTerminal({ terminal });
    const nonce = `CTX_INSTANCE=${await instanceOf(terminal.id)}`;
    expect(await carriers(nonce)).toHaveLength(5);

    const killed = await client.terminals.kill({ terminal });
    expect(killed).toMatchObject({ quiescent: true, survivors: [] });
    expect(killed.terminal?.state).toBe(TerminalState.EXITED);
    expect(killed.terminal?.uid).toBe(record.terminal?.uid);
    expect(await carriers(nonce)).toEqual([]);
    const { output } = await watchAll(client, { terminal });
    const pids = /jobs ([\d ]+) ready/.exec(output.toString())?.[1]?.split(' ') ?? [];
    expect(pids).toHaveLength(4);
    for (const pid of pids) expect(isRunning(pid)).toBe(false);
  });

  it('leaves no zombie of 200 terminals that exit (case 24)', async () => {
    for (let batch = 0; batch < 10; batch += 1) {
      const ids = Array.from({ length: 20 }, (_, n) => `short-${batch}-${n}`);
      await Promise.all(
        ids.map((id) => client.terminals.createTerminal({ agent: 'coder', id, command: ['true'] })),
      );
      await Promise.all(
        ids.map((id) =>
          client.terminals.wait({ terminal: { id }, condition: { case: 'exit', value: true } }),
        ),
      );
    }
    const { processes } = await scanProcesses();
    expect(
      processes.filter(({ parent, state }) => parent === process.pid && state === 'Z'),
    ).toEqual([]);
  });

  describe('a command that cannot start (case 27)', () => {
    const place = (name: string) => join(service.stateDir, 'commands', name);

    beforeAll(async () => {
      await mkdir(place('directory'), { recursive: true });
      await writeFile(place('plain'), '#!/bin/sh\n', { mode: 0o644 });
      await writeFile(place('orphan'), '#!/no/such/interpreter\n', { mode: 0o755 });
      await chmod(place('orphan'), 0o755);
    });

    it.each([
      ['missing', /not found|no such|does not exist/i],
      ['plain', /not executable|permission|executed/i],
      ['directory', /directory/i],
      ['orphan', /interpreter/i],
    ])(
      'is refused with the reason: %s; nothing is left of it, and create may be retried',
      async (name, why) => {
        const request = {
          agent: 'cannot',
          id: name,
          command: [place(name)],
          requestId: `create-${name}`,
        };
        const error = await client.terminals.createTerminal(request).catch((e: unknown) => e);
        expect(error).toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'COMMAND_NOT_FOUND' });
        expect(String(error)).toMatch(why);
        await expect(
          client.terminals.getTerminal({ terminal: { id: name } }),
        ).rejects.toMatchObject({
          reason: 'TERMINAL_NOT_FOUND',
        });
        const dir = `${service.stateDir}/home/${owner}/agent/cannot/session/default/terminal/${name}`;
        expect(existsSync(dir)).toBe(false);

        const { terminal } = await client.terminals.createTerminal({
          ...request,
          command: ['true'],
        });
        expect(terminal?.ref?.id).toBe(name);
      },
    );
  });

  async function instanceOf(id: string): Promise<string> {
    const dir = `${service.stateDir}/home/${owner}/agent/coder/session/default/terminal/${id}`;
    return JSON.parse(readFileSync(join(dir, 'meta.json'), 'utf8')).started_by.nonce;
  }
});

/** Processes with this very variable in their environment. */
async function carriers(variable: string): Promise<number[]> {
  const { processes } = await scanProcesses();
  return processes.flatMap(({ pid }) => {
    try {
      const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
      return environment.includes(variable) ? [pid] : [];
    } catch {
      return [];
    }
  });
}

/** A zombie whose parent, not ours, has yet to collect it runs no more. */
function isRunning(pid: string): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
