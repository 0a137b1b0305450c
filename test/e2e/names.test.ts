import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Client } from '../../src/client/connect.js';
import { owner } from '../support/registry.js';
import { startService, type TestService } from '../support/service.js';

const BAD_NAMES = [
  '../x',
  '..',
  '.',
  '%2e%2e',
  'a/b',
  '/etc',
  'a\0b',
  'a b',
  'ä',
  '-x',
  'x.sock',
  'x.d',
  'x'.repeat(65),
  'x'.repeat(300),
];

describe('names that are none', () => {
  let service: TestService;
  let client: Client;

  beforeAll(async () => {
    service = await startService();
    client = service.client();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  it.each(BAD_NAMES)('are refused as agent, session and id: %j', async (bad) => {
    const invalid = { code: 'INVALID_ARGUMENT', reason: 'FIELD_INVALID' };
    const { terminals } = client;
    const command = ['true'];
    await expect(terminals.createTerminal({ agent: bad, command })).rejects.toMatchObject(invalid);
    await expect(
      terminals.createTerminal({ agent: 'a', session: bad, command }),
    ).rejects.toMatchObject(invalid);
    await expect(terminals.createTerminal({ agent: 'a', id: bad, command })).rejects.toMatchObject(
      invalid,
    );
    await expect(terminals.getTerminal({ terminal: { id: bad } })).rejects.toMatchObject(invalid);
  });

  it('leave nothing inside the state directory or beside it', async () => {
    expect(await readdir(service.stateDir)).not.toContain('home');
    expect(await readdir(dirname(service.stateDir))).not.toContain('x');
  });

  it('cannot be made to lead out by a link that lies in the way', async () => {
    const agents = join(service.stateDir, `home/${owner}/agent`);
    const outside = join(service.stateDir, 'outside');
    await mkdir(agents, { recursive: true, mode: 0o700 });
    await mkdir(outside, { mode: 0o700 });
    await symlink(outside, join(agents, 'linked'));
    await expect(
      client.terminals.createTerminal({ agent: 'linked', command: ['true'] }),
    ).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(await readdir(outside)).toEqual([]);
  });

  it('are refused for two pairs that would share the default id (case 31)', async () => {
    const command = ['true'];
    await client.terminals.createTerminal({ agent: 'a-b', session: 'c', command });
    await expect(
      client.terminals.createTerminal({ agent: 'a', session: 'b-c', command }),
    ).rejects.toMatchObject({ code: 'ALREADY_EXISTS', reason: 'TERMINAL_EXISTS' });
  });

  it('do not hide what was there before: a directory that cannot be read is not taken over', async () => {
    const dir = join(service.stateDir, `home/${owner}/agent/old/session/default/terminal/kept`);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await writeFile(join(dir, 'meta.json'), 'not json', { mode: 0o600 });
    await writeFile(join(dir, 'events.jsonl'), 'kept', { mode: 0o600 });
    await expect(
      client.terminals.createTerminal({ agent: 'old', id: 'kept', command: ['/nowhere'] }),
    ).rejects.toMatchObject({ reason: 'TERMINAL_EXISTS' });
    expect(await readdir(dir)).toEqual(expect.arrayContaining(['events.jsonl', 'meta.json']));
  });
});
