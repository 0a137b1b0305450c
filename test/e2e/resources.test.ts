import { execFileSync } from 'node:child_process';
import { appendFile, link, readdir, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '../../src/client/connect.js';
import { systemClock } from '../../src/server/clock.js';
import { owner } from '../support/registry.js';
import { startService, type TestService } from '../support/service.js';
import { seqsTo, watchAll } from '../support/streams.js';

const HOUR_MS = 3_600_000;

describe('terminals as resources, over TLS', () => {
  let service: TestService;
  let client: Client;
  /** Milliseconds that the service’s clock is ahead. */
  let ahead = 0;

  beforeAll(async () => {
    const now = () => systemClock.now() + ahead;
    service = await startService({ clock: { now, after: systemClock.after } });
    client = service.client();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  const dirOf = (id: string) =>
    `${service.stateDir}/home/${owner}/agent/coder/session/default/terminal/${id}`;

  const create = (id: string, script: string, rest = {}) =>
    client.terminals.createTerminal({
      agent: 'coder',
      id,
      command: ['/bin/sh', '-c', script],
      ...rest,
    });

  const untilExit = (id: string) =>
    client.terminals.wait({ terminal: { id }, condition: { case: 'exit', value: true } });

  it('are the same by their id, hours after the client left (case 25)', async () => {
    const terminal = { id: 'for-hours' };
    const left = service.client();
    const { terminal: created } = await left.terminals.createTerminal({
      agent: 'coder',
      ...terminal,
      command: ['sh', '-c', 'stty -echo; echo before; read line; echo "after $line"'],
    });
    await left.terminals.wait({ terminal, condition: { case: 'pattern', value: 'before' } });
    left.close();

    ahead += 9 * HOUR_MS;
    client = service.client();
    const { terminal: found } = await client.terminals.getTerminal({ terminal });
    expect(found).toMatchObject({ uid: created?.uid, instance: 1, state: created?.state });
    await client.terminals.write({ terminal, data: Buffer.from('hours\n') });
    const { output, exitCode } = await watchAll(client, { terminal });
    expect([output.toString(), exitCode]).toEqual(['before\r\nafter hours\r\n', 0]);
  });

  it('are all found by a label, in a fixed order, in pages that stay put (case 26)', async () => {
    const expected = ['B-web', 'a-web', 'c-web', 'd-web', 'e-web'];
    for (const id of ['d-web', 'a-web', 'x-db', 'e-web', 'B-web', 'c-web']) {
      await create(id, 'exit 0', { labels: { tier: id.slice(2) } });
    }
    const filter = { labels: { tier: 'web' } };
    const idsOf = (page: Awaited<ReturnType<typeof client.terminals.listTerminals>>) =>
      page.terminals.map(({ ref }) => ref?.id);
    for (let round = 0; round < 3; round += 1) {
      expect(idsOf(await client.terminals.listTerminals({ filter }))).toEqual(expected);
    }
    const paged: ReturnType<typeof idsOf>[] = [];
    let pageToken = '';
    do {
      const page = await client.terminals.listTerminals({ filter, pageSize: 2, pageToken });
      paged.push(idsOf(page));
      pageToken = page.nextPageToken;
      if (paged.length === 1) await create('A-web', 'exit 0', { labels: { tier: 'web' } });
    } while (pageToken !== '');
    expect(paged).toEqual([['B-web', 'a-web'], ['c-web', 'd-web'], ['e-web']]);
  });

  it('go on after a torn last line of the log: it is set aside, the next event has a line of its own (case 28)', async () => {
    const terminal = { id: 'torn' };
    await create('torn', 'echo one');
    await untilExit('torn');
    const path = join(dirOf('torn'), 'events.jsonl');
    const sound = await readFile(path, 'utf8');
    const torn = '{"seq":3,"ts":17356896';
    await service.restartAll(() => appendFile(path, torn));
    client = service.client();
    await client.terminals.startTerminal({ terminal });
    await client.terminals.wait({
      terminal,
      condition: { case: 'exit', value: true },
      afterSeq: 2n,
    });

    const log = await readFile(path, 'utf8');
    expect(log.startsWith(sound)).toBe(true);
    expect(log.endsWith('\n')).toBe(true);
    const seqs = log
      .trimEnd()
      .split('\n')
      .map((line) => BigInt(JSON.parse(line).seq));
    expect(seqs).toEqual(seqsTo(seqs.length));
    expect(seqs.length).toBeGreaterThan(2);
    const aside = (await readdir(dirOf('torn'))).filter((file) => file.startsWith('events.torn-'));
    expect(aside).toHaveLength(1);
    expect(await readFile(join(dirOf('torn'), aside[0] ?? ''), 'utf8')).toBe(torn);
    const all = await watchAll(client, { terminal, until: 2, follow: false });
    expect(all.seqs).toEqual(seqs);
  });

  it('are not started again by who could not have created them as they are', async () => {
    const terminal = { id: 'stored' };
    await create('stored', 'echo "$PWD $MY_OPTION"', { cwd: '/tmp', env: { MY_OPTION: 'x' } });
    await untilExit('stored');
    const command = ['/bin/sh', '-c', 'echo "$PWD $MY_OPTION"'];
    const enough = { commands: [command], cwd_under: ['/tmp'], env_allow: ['MY_*'] };
    const lacking = [
      { ...enough, commands: [['/bin/ls']] },
      { ...enough, cwd_under: ['/workspace'] },
      { ...enough, env_allow: ['OTHER'] },
      { ...enough, env_allow: [] },
    ];
    for (const constraints of lacking) {
      await expect(
        service.client({ constraints }).terminals.startTerminal({ terminal }),
      ).rejects.toMatchObject({ code: 'PERMISSION_DENIED', reason: 'GRANT_MISSING' });
    }
    const other = service.client({ actions: ['terminal.read', 'terminal.write'] });
    await expect(other.terminals.startTerminal({ terminal })).rejects.toMatchObject({
      code: 'PERMISSION_DENIED',
      reason: 'GRANT_MISSING',
    });
    expect((await client.terminals.getTerminal({ terminal })).terminal?.instance).toBe(1);

    const allowed = service.client({ constraints: enough });
    expect((await allowed.terminals.startTerminal({ terminal })).terminal?.instance).toBe(2);
  });

  it('are not started again in a directory that a link has taken out of what the grant allows', async () => {
    const [inside, outside] = [join(service.stateDir, 'inside'), join(service.stateDir, 'outside')];
    execFileSync('mkdir', ['-p', join(inside, 'work'), outside]);
    const constraints = { cwd_under: [inside] };
    await create('moved', 'pwd', { cwd: join(inside, 'work') });
    await untilExit('moved');
    await rename(join(inside, 'work'), join(inside, 'old'));
    await symlink(outside, join(inside, 'work'));
    await expect(
      service.client({ constraints }).terminals.startTerminal({ terminal: { id: 'moved' } }),
    ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'CWD_INVALID' });
  });

  describe('whose files are none of ours', () => {
    const files = ['meta.json', 'events.jsonl', 'env.json'];
    const kinds = ['symbolic link', 'hard link', 'FIFO'];
    const cases = files.flatMap((file) => kinds.map((kind) => ({ file, kind })));
    const idOf = ({ file, kind }: { file: string; kind: string }) =>
      `${file.split('.')[0]}-${kind.split(' ')[0]}`;
    const outside = (id: string) => join(service.stateDir, `outside-${id}`);
    const contents = new Map<string, string>();

    beforeAll(async () => {
      for (const each of cases) {
        await create(idOf(each), 'echo secret', { env: { MY_OPTION: 'x' } });
        await untilExit(idOf(each));
      }
      await service.restartAll(async () => {
        for (const each of cases) {
          const id = idOf(each);
          const path = join(dirOf(id), each.file);
          contents.set(id, await readFile(path, 'utf8'));
          await rename(path, outside(id));
          if (each.kind === 'symbolic link') await symlink(outside(id), path);
          if (each.kind === 'hard link') await link(outside(id), path);
          if (each.kind === 'FIFO') execFileSync('mkfifo', [path]);
        }
        await writeFile(join(service.stateDir, 'marker'), '');
      });
      client = service.client();
    });

    it.each(cases)(
      'are refused without a hang, and nothing else is touched: $file as a $kind',
      async (each) => {
        const terminal = { id: idOf(each) };
        const refused = (call: Promise<unknown>) =>
          call.then(
            () => 'done',
            (error: { reason?: string; code?: string }) => error.reason ?? error.code,
          );
        const start = await refused(
          client.terminals.startTerminal({ terminal }, { timeoutMs: 5_000 }),
        );
        expect(start).not.toBe('done');
        expect(start).not.toBe('DEADLINE_EXCEEDED');
        if (each.file === 'events.jsonl') {
          const watched = await refused(watchAll(client, { terminal }, AbortSignal.timeout(5_000)));
          expect(watched).toBe('INTERNAL');
        }
        expect(await readFile(outside(terminal.id), 'utf8')).toBe(contents.get(terminal.id));
      },
    );

    it('keep nobody from the terminals beside them', async () => {
      await create('beside', 'echo fine');
      const { output } = await watchAll(client, { terminal: { id: 'beside' } });
      expect(output.toString()).toBe('fine\r\n');
    });
  });
});
