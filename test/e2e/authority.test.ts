/** Delegation and revocation over the whole service: TLS, real tokens, real PTYs. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Client } from '../../src/client/connect.js';
import type { Init } from '../../src/client/grpc.js';
import type { ErrorReason } from '../../src/core/errors.js';
import type { DelegateRequestSchema } from '../../src/gen/public/grantty/v1/grant_service_pb.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import {
  AttachmentKind,
  AttachmentMode,
  Signal,
} from '../../src/gen/public/grantty/v1/terminal_pb.js';
import type {
  AttachResponse,
  WatchResponse,
} from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { owner } from '../support/registry.js';
import { startService, type TestService } from '../support/service.js';

type DelegateInit = Init<typeof DelegateRequestSchema>;

const ALL = ['create', 'read', 'write', 'resize', 'signal', 'stop', 'kill'].map(
  (name) => `terminal.${name}`,
);
const everywhere = { owner, agent: '*', session: '*', terminal: '*' };

/** A grant of all the owner's terminals, as a part of g1. */
function part(rest: object = {}) {
  return {
    id: 'g1',
    parentGrantId: 'g1',
    actions: ALL,
    resource: everywhere,
    constraints: { envAllow: ['*'] },
    ...rest,
  };
}

async function reasonOf(call: Promise<unknown>): Promise<ErrorReason | undefined> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return (error as { reason?: ErrorReason } | undefined)?.reason;
}

function terminal(id: string) {
  return { owner: String(owner), id };
}

describe('authority, over the whole service', () => {
  let service: TestService;
  let root: Client;

  beforeAll(async () => {
    service = await startService();
    root = service.client();
  });

  afterAll(async () => {
    await service[Symbol.asyncDispose]();
  });

  /** Clients of before are of no use then. */
  async function restart(): Promise<void> {
    await service.restartServer();
    root = service.client();
  }

  async function delegate(from: Client, request: Partial<DelegateInit> = {}) {
    const answer = await from.grants.delegate({ actor: 'helper', grants: [part()], ...request });
    return { ...answer, client: service.client(answer.token) };
  }

  function create(client: Client, id: string, command = ['/bin/sleep', '1000']) {
    return client.terminals.createTerminal({ owner: String(owner), agent: 'coder', id, command });
  }

  describe('a delegated token', () => {
    it('does what it was made for, and nothing else', async () => {
      await create(root, 'seen');
      const child = await delegate(root, { grants: [part({ actions: ['terminal.read'] })] });
      const got = await child.client.terminals.getTerminal({ terminal: terminal('seen') });
      expect(got.terminal?.ref?.id).toBe('seen');
      expect(await reasonOf(child.client.terminals.kill({ terminal: terminal('seen') }))).toBe(
        'GRANT_MISSING',
      );
    });

    it('says where it comes from', async () => {
      const { token: rootId } = await root.grants.introspect({});
      const child = await delegate(root, { actor: 'a' });
      const grandchild = await delegate(child.client, { actor: 'b', lifetime: { seconds: 60n } });
      const seen = await grandchild.client.grants.introspect({});
      expect(seen.principal?.actors).toEqual(['b', 'a']);
      expect(seen.principal?.subject).toBe('tester');
      expect(seen.lineage).toMatchObject({ root: rootId, parent: child.id, depth: 2, maxDepth: 8 });
      expect(seen.grants).toMatchObject([{ id: 'g1', parentGrantId: 'g1' }]);
      expect(seen.token).toEqual(grandchild.id);
      expect(Number(seen.expiresAt?.seconds) - Number(seen.issuedAt?.seconds)).toBe(60);
    });

    it.each<[string, Partial<DelegateInit>, ErrorReason]>([
      [
        'an owner more',
        { grants: [part({ resource: { ...everywhere, owner: '*' } })] },
        'GRANT_MISSING',
      ],
      ['a grant that is not there', { grants: [part({ parentGrantId: 'g2' })] }, 'GRANT_MISSING'],
      ['no grant to be a part of', { grants: [part({ parentGrantId: '' })] }, 'FIELD_INVALID'],
      ['no grants', { grants: [] }, 'FIELD_INVALID'],
      ['an unknown action', { grants: [part({ actions: ['terminal.kil'] })] }, 'FIELD_INVALID'],
      ['two grants of one id', { grants: [part(), part()] }, 'FIELD_INVALID'],
      ['nobody to act', { actor: '' }, 'FIELD_INVALID'],
      ['a longer life', { lifetime: { seconds: 7200n } }, 'FIELD_INVALID'],
      ['no life', { lifetime: { seconds: 0n } }, 'FIELD_INVALID'],
      ['half a second more', { lifetime: { seconds: 5n, nanos: 500_000_000 } }, 'FIELD_INVALID'],
      ['more steps', { maxDepth: 9 }, 'FIELD_INVALID'],
      ['no certificate', { certificateThumbprint: 'x' }, 'FIELD_INVALID'],
      ['a broken request id', { requestId: '\n' }, 'FIELD_INVALID'],
    ])('cannot have %s', async (_, request, reason) => {
      const answer = root.grants.delegate({ actor: 'helper', grants: [part()], ...request });
      expect(await reasonOf(answer)).toBe(reason);
    });

    it('is told which part of it goes beyond which grant', async () => {
      const narrow = await delegate(root, {
        grants: [part({ actions: ['terminal.read'], constraints: { maxTerminals: 1 } })],
      });
      const beyond = (rest: object) =>
        narrow.client.grants.delegate({
          actor: 'b',
          grants: [part({ actions: ['terminal.read'], constraints: { maxTerminals: 1 }, ...rest })],
        });
      const text = 'the new grant g1 goes beyond grant g1 of the token in';
      await expect(beyond({ actions: ALL })).rejects.toThrow(`${text} its actions`);
      await expect(beyond({ resource: { ...everywhere, owner: '*' } })).rejects.toThrow(
        `${text} its resource (owner)`,
      );
      await expect(beyond({ constraints: { maxTerminals: 2 } })).rejects.toThrow(
        `${text} its limit max_terminals`,
      );
    });

    it('cannot be delegated further than its line may go', async () => {
      const last = await delegate(root, { maxDepth: 1 });
      const answer = last.client.grants.delegate({ actor: 'x', grants: [part()] });
      expect(await reasonOf(answer)).toBe('GRANT_MISSING');
    });

    it('comes back, the same, when the request is repeated, also by another server', async () => {
      const token = await service.token();
      root = service.client(token);
      const request = { actor: 'retry', grants: [part()], requestId: 'again' };
      const both = await Promise.all([
        root.grants.delegate(request),
        root.grants.delegate(request),
      ]);
      expect(both[0].token).toBe(both[1].token);
      await restart();
      const retried = await root.grants.delegate(request, { token });
      expect(retried.token).toBe(both[0].token);
      expect(await reasonOf(root.grants.delegate({ ...request, actor: 'other' }, { token }))).toBe(
        'REQUEST_ID_REUSED',
      );
    });
  });

  describe('a budget', () => {
    it('of three terminals is that of ten children together, also after a restart', async () => {
      const parent = service.client({ subject: 'parent', constraints: { max_terminals: 3 } });
      const grant = part({ constraints: { envAllow: ['*'], maxTerminals: 3 } });
      const children = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          delegate(parent, { actor: `child-${index}`, grants: [grant] }),
        ),
      );
      const made = await Promise.all(
        children.map(({ client }, index) => reasonOf(create(client, `budget-${index}`))),
      );
      expect(made.filter((reason) => reason === undefined)).toHaveLength(3);
      expect(made.filter((reason) => reason === 'QUOTA_TERMINALS')).toHaveLength(7);

      const grandchild = await delegate(children[0]?.client as Client, { grants: [grant] });
      expect(await reasonOf(create(grandchild.client, 'budget-x'))).toBe('QUOTA_TERMINALS');

      await restart();
      const renewed = service.client({ subject: 'parent', constraints: { max_terminals: 3 } });
      const again = await delegate(renewed, { actor: 'child-0', grants: [grant] });
      expect(await reasonOf(create(again.client, 'budget-y'))).toBe('QUOTA_TERMINALS');

      const living = made.indexOf(undefined);
      await root.terminals.kill({ terminal: terminal(`budget-${living}`) });
      const last = service.client(grandchild.token);
      expect(await reasonOf(create(last, 'budget-z'))).toBeUndefined();
      const { terminal: kept } = await root.terminals.getTerminal({
        terminal: terminal('budget-z'),
      });
      expect(kept?.createdBy).toMatchObject({ subject: 'parent', grantIds: ['g1', 'g1', 'g1'] });
    });

    it('of input bytes is that of the children together', async () => {
      await create(root, 'rate', ['/bin/cat']);
      const parent = service.client({ constraints: { write_bytes_per_second: 10 } });
      const grant = part({ constraints: { envAllow: ['*'], writeBytesPerSecond: 10n } });
      const children = await Promise.all(
        ['a', 'b'].map((actor) => delegate(parent, { actor, grants: [grant] })),
      );
      const write = { terminal: terminal('rate'), data: Buffer.from('0123456789') };
      const [a, b] = children;
      expect(await reasonOf(a?.client.terminals.write(write) as Promise<unknown>)).toBeUndefined();
      expect(await reasonOf(b?.client.terminals.write(write) as Promise<unknown>)).toBe(
        'RATE_LIMITED',
      );
    });
  });

  describe('a check of access', () => {
    it('says which grant allows it', async () => {
      await create(root, 'checked');
      const answer = await root.grants.checkAccess({
        action: 'terminal.kill',
        terminal: terminal('checked'),
      });
      expect(answer).toMatchObject({ allowed: true, grantId: 'g1', constraint: '' });
      expect(answer.considered).toMatchObject([{ grantId: 'g1', covers: true, failed: '' }]);
      expect(answer.decisionId).not.toBe('');
    });

    it('says which part of a grant refuses it', async () => {
      const reader = service.client({ actions: ['terminal.create', 'terminal.signal'] });
      const check = (request: object) =>
        reader.grants.checkAccess({
          action: 'terminal.create',
          terminal: terminal('checked'),
          ...request,
        });
      const refused = await check({ action: 'terminal.kill' });
      expect(refused.allowed).toBe(false);
      expect(refused.considered).toMatchObject([
        { grantId: 'g1', covers: false, failed: 'action' },
      ]);
      const limited = service.client({ constraints: { commands: [['/bin/true']], signals: [] } });
      const create = { agent: 'coder', command: ['/bin/false'], cwd: '/' };
      const answer = await limited.grants.checkAccess({
        action: 'terminal.create',
        terminal: terminal('new'),
        create,
      });
      expect(answer).toMatchObject({ allowed: false, constraint: 'commands', grantId: '' });
      const signal = { action: 'terminal.signal', terminal: terminal('checked') };
      expect((await limited.grants.checkAccess(signal)).allowed).toBe(true);
      expect(await limited.grants.checkAccess({ ...signal, signal: Signal.INT })).toMatchObject({
        allowed: false,
        constraint: 'signals',
      });
    });

    it('has no effect, and refuses what is no question', async () => {
      await root.grants.checkAccess({ action: 'terminal.kill', terminal: terminal('checked') });
      const { terminal: still } = await root.terminals.getTerminal({
        terminal: terminal('checked'),
      });
      expect(still?.exitStatus).toBeUndefined();
      for (const question of [
        { action: 'terminal.kil' },
        { action: 'terminal.read', create: { agent: 'coder' } },
        { action: 'terminal.read', signal: Signal.INT },
        { action: 'terminal.read', signalBytes: true },
      ]) {
        const answer = root.grants.checkAccess({ ...question, terminal: terminal('checked') });
        expect(await reasonOf(answer)).toBe('FIELD_INVALID');
      }
    });

    it('says of a terminal out of reach what it says of none at all', async () => {
      const stranger = service.client({ resource: { agent: 'other' } });
      const ask = async (id: string) => {
        const answer = await stranger.grants.checkAccess({
          action: 'terminal.read',
          terminal: terminal(id),
        });
        return { ...answer, decisionId: '' };
      };
      const hidden = await ask('checked');
      expect(hidden).toEqual(await ask('never-made'));
      expect(hidden).toMatchObject({ allowed: false, considered: [], constraint: '' });
    });
  });

  describe('a revocation', () => {
    it('is of the own line only: not of the parent, not of a sibling, not of a stranger', async () => {
      const child = await delegate(root);
      const sibling = await delegate(root);
      const { token: rootId } = await root.grants.introspect({});
      for (const token of [rootId, sibling.id, { issuer: '', jti: 'unknown' }]) {
        expect(await reasonOf(child.client.grants.revoke(token ? { token } : {}))).toBe(
          'GRANT_MISSING',
        );
      }
      expect(await reasonOf(sibling.client.grants.introspect({}))).toBeUndefined();
    });

    it('counts what it revoked, can be repeated, and outlives the server', async () => {
      const mine = service.client({ subject: 'parent-of-many' });
      const child = await delegate(mine);
      const grandchild = await delegate(child.client);
      const target = child.id ? { token: child.id } : {};
      const first = await mine.grants.revoke(target);
      expect(first.revokedTokens).toBe(2);
      const second = await mine.grants.revoke(target);
      expect(second).toMatchObject({ revokedTokens: 0, revokedAt: first.revokedAt });
      expect(await reasonOf(grandchild.client.grants.introspect({}))).toBe('GRANT_REVOKED');
      expect(await reasonOf(mine.grants.introspect({}))).toBeUndefined();

      await restart();
      const late = service.client(grandchild.token);
      expect(await reasonOf(late.grants.introspect({}))).toBe('GRANT_REVOKED');
    });

    it('of a parent stops streams and queued input of a grandchild before it answers', async () => {
      const file = join(service.stateDir, 'sink');
      const script = `stty raw -echo; echo ready; exec cat > ${file}`;
      await create(root, 'sink', ['/bin/sh', '-c', script]);
      for await (const event of root.watch({ terminal: terminal('sink') })) {
        if (event.case === 'output') break;
      }
      const { terminal: record } = await root.terminals.getTerminal({ terminal: terminal('sink') });
      const pid = record?.pid ?? 0;
      await stat(`/proc/${pid}`);

      const parent = service.client({ subject: 'to-be-revoked' });
      const child = await delegate(parent);
      const { client } = await delegate(child.client);
      const watched: WatchResponse[] = [];
      const watching = (async () => {
        for await (const one of client.terminals.watch({ terminal: terminal('sink') })) {
          watched.push(one);
        }
      })();
      const duplex = await client.terminals.attach();
      await duplex.send({
        frame: {
          case: 'open',
          value: { terminal: terminal('sink'), kind: AttachmentKind.SERVICE },
        },
      });
      const attached: AttachResponse[] = [];
      let started = () => {};
      const open = new Promise<void>((resolve) => {
        started = resolve;
      });
      const reading = (async () => {
        for await (const one of duplex.responses) {
          attached.push(one);
          started();
        }
      })();
      await open;

      // The sink reads no more: what the kernel does not hold waits in the queue.
      process.kill(pid, 'SIGSTOP');
      const sent = Buffer.alloc(1024 * 1024, 'abcdefghijklmnopqrstuvwxyz012345');
      const sending = (async () => {
        for (let at = 0; at < sent.length; at += 65_536) {
          const data = sent.subarray(at, at + 65_536);
          await duplex.send({ frame: { case: 'input', value: { data } } });
        }
      })();
      sending.catch(() => {});
      for (;;) {
        const { terminal: now } = await root.terminals.getTerminal({ terminal: terminal('sink') });
        if (now?.attachments.some(({ mode }) => mode === AttachmentMode.READ_WRITE)) break;
      }

      const answer = await parent.grants.revoke({});
      expect(answer.closedStreams).toBe(2);
      expect(await reasonOf(watching)).toBe('GRANT_REVOKED');
      expect(await reasonOf(reading)).toBe('GRANT_REVOKED');
      for (const last of [watched.at(-1)?.event, attached.at(-1)?.event]) {
        expect(last).toMatchObject({
          case: 'closing',
          value: { reason: ClosingReason.GRANT_REVOKED },
        });
      }
      expect(await reasonOf(client.terminals.getTerminal({ terminal: terminal('sink') }))).toBe(
        'GRANT_REVOKED',
      );

      // A holder of another line writes on: nothing of the revoked one comes before or after it.
      process.kill(pid, 'SIGCONT');
      await root.terminals.write({ terminal: terminal('sink'), data: Buffer.from('END') });
      let bytes = Buffer.alloc(0);
      while (!bytes.includes('END')) {
        await pause(10);
        bytes = await readFile(file);
      }
      expect(bytes.length).toBeLessThan(sent.length);
      expect(bytes.subarray(0, -3).equals(sent.subarray(0, bytes.length - 3))).toBe(true);
      await root.terminals.kill({ terminal: terminal('sink') });
      expect((await readFile(file)).length).toBe(bytes.length);
    }, 30_000);

    it('by the operator reaches a subject, with what descends from it', async () => {
      const mine = service.client({ subject: 'fired' });
      const child = await delegate(mine);
      const issuedBefore = Math.floor(Date.now() / 1000) + 1;
      await service.server.revoke({
        kind: 'subject',
        issuer: 'https://issuer.test',
        subject: 'fired',
        issuedBefore,
      });
      expect(await reasonOf(child.client.grants.introspect({}))).toBe('GRANT_REVOKED');
      expect(await reasonOf(mine.grants.introspect({}))).toBe('GRANT_REVOKED');
      expect(await reasonOf(root.grants.introspect({}))).toBeUndefined();
    });
  });
});
