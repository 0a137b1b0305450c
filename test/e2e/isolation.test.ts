import { spawnSync } from 'node:child_process';
import type { Client } from '../../src/client/connect.js';
import { type ServiceOptions, startService, type TestService } from '../support/service.js';
import { skipAloud } from '../support/skipAloud.js';
import { watchAll } from '../support/streams.js';

const isRoot = process.getuid?.() === 0;

/** A uid that no account has: it gets no groups but its own. */
const UID = '4217';

/** What the system says of that uid; without an account a group of its own number. */
function groupsOf(uid: string): { readonly gid: string; readonly groups: string } {
  const ask = (...args: string[]) => {
    const { status, stdout } = spawnSync('id', [...args, '--', uid], { encoding: 'utf8' });
    return status === 0 ? stdout.trim() : uid;
  };
  return { gid: ask('-g'), groups: ask('-G') };
}

describe('children of a supervisor that is root, by uid', () => {
  let service: TestService | undefined;

  beforeAll(async () => {
    const options: ServiceOptions = { isolation: { mode: 'by-uid', minUid: 1000 } };
    if (isRoot) service = await startService(options);
  });

  afterAll(() => service?.[Symbol.asyncDispose]());

  async function printedBy(client: Client, owner: string, script: string): Promise<string> {
    const { terminal } = await client.terminals.createTerminal({
      agent: 'coder',
      session: `s${script.length}`,
      owner,
      cwd: '/',
      command: ['sh', '-c', script],
    });
    const { output } = await watchAll(client, { terminal: terminal?.ref ?? {} });
    return output.toString().replaceAll('\r\n', '\n');
  }

  it.each([UID, '1000'])(
    'run as the owner %s, with its groups, without new privileges, on a terminal of their own',
    async (uid) => {
      if (!service) return skipAloud('needs root');
      const client = service.client({ resource: { owner: uid } });
      const script =
        'id -u; id -g; id -G; grep -E "^(NoNewPrivs|CapEff)" /proc/self/status; stat -c %u "$(tty)"; : < /dev/tty && echo opened';
      const { gid, groups } = groupsOf(uid);
      expect(await printedBy(client, uid, script)).toBe(
        `${uid}\n${gid}\n${groups}\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\n${uid}\nopened\n`,
      );
    },
  );

  it('cannot read the state directory, nor reach the server’s processes', async () => {
    if (!service) return skipAloud('needs root');
    const client = service.client({ resource: { owner: UID } });
    const script = `ls ${service.stateDir} || echo refused; kill -0 ${process.pid} || echo refused`;
    expect((await printedBy(client, UID, script)).match(/refused/g)).toHaveLength(2);
  });

  it.each(['0', '00', '01000', '999', '4294967295', '4294967296', 'root', 'bob'])(
    'refuses the owner %s, and nothing is left of it',
    async (owner) => {
      if (!service) return skipAloud('needs root');
      const client = service.client({ resource: { owner } });
      await expect(
        client.terminals.createTerminal({ agent: 'coder', owner, command: ['true'] }),
      ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'FIELD_INVALID' });
      expect((await service.supervisor.list()).filter((t) => t.record.owner === owner)).toEqual([]);
    },
  );

  it('does not reach owner 0 by a wildcard', async () => {
    if (!service) return skipAloud('needs root');
    const client = service.client({ resource: { owner: '*' } });
    await expect(
      client.terminals.createTerminal({ agent: 'coder', owner: '0', command: ['true'] }),
    ).rejects.toMatchObject({ code: 'PERMISSION_DENIED', reason: 'GRANT_MISSING' });
  });
});

describe('children that share the server’s uid', () => {
  it('are of one owner: a second one is refused', async () => {
    await using service = await startService();
    const client = service.client({ resource: { owner: UID } });
    await expect(
      client.terminals.createTerminal({ agent: 'coder', owner: UID, command: ['true'] }),
    ).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', reason: 'FIELD_INVALID' });
  });
});
