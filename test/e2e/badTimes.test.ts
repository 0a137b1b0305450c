/** Durations and times that are none, in every field of every request that has one. */
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { DurationSchema, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Client } from '../../src/client/connect.js';
import { GrantService } from '../../src/gen/public/grantty/v1/grant_service_pb.js';
import { ServerService } from '../../src/gen/public/grantty/v1/server_service_pb.js';
import { SessionService } from '../../src/gen/public/grantty/v1/session_service_pb.js';
import { TerminalService } from '../../src/gen/public/grantty/v1/terminal_service_pb.js';
import { owner } from '../support/registry.js';
import { startService, type TestService } from '../support/service.js';

type Pair = { readonly seconds: bigint; readonly nanos: number };

/** Messages that a field is reached over, so that a recursive one would end. */
const MAX_DEPTH = 8;

const terminal = { owner: String(owner), id: 'timed' };

function grantUntil(expiresAt: Pair) {
  return {
    id: 'g1',
    parentGrantId: 'g1',
    actions: ['terminal.read'],
    resource: { owner, agent: '*', session: '*', terminal: '*' },
    constraints: { expiresAt },
  };
}

/** By the place of the field in the contract: a call with that value in it, and how the server names it. */
const calls: Readonly<
  Record<string, { field?: string; call: (client: Client, value: Pair) => Promise<unknown> }>
> = {
  'TerminalService.Wait.idle': {
    call: ({ terminals }, value) =>
      terminals.wait({ terminal, condition: { case: 'idle', value } }, { timeoutMs: 5_000 }),
  },
  'TerminalService.Stop.grace': {
    call: ({ terminals }, grace) => terminals.stop({ terminal, grace }),
  },
  'SessionService.Send.timeout': {
    call: async (client, timeout) => {
      for await (const _ of client.send({ terminal, text: '', submit: false, timeout })) {
        // Nothing comes of it.
      }
    },
  },
  'GrantService.Delegate.lifetime': {
    call: ({ grants }, lifetime) =>
      grants.delegate({
        actor: 'a',
        grants: [grantUntil({ seconds: 2_000_000_000n, nanos: 0 })],
        lifetime,
      }),
  },
  'GrantService.Delegate.grants.constraints.expires_at': {
    field: 'grants[0].constraints.expires_at',
    call: ({ grants }, expiresAt) =>
      grants.delegate({ actor: 'a', grants: [grantUntil(expiresAt)] }),
  },
};

const times: readonly string[] = [DurationSchema.typeName, TimestampSchema.typeName];

function timesOf(message: DescMessage, place: string, depth = 0): string[] {
  if (depth > MAX_DEPTH) return [];
  return message.fields.flatMap((field: DescField) => {
    const inner = field.message;
    if (inner === undefined) return [];
    const here = `${place}.${field.name}`;
    const isTime = times.includes(inner.typeName);
    return isTime ? [here] : timesOf(inner, here, depth + 1);
  });
}

describe('a duration or a time that is none', () => {
  let service: TestService;
  let client: Client;
  beforeAll(async () => {
    service = await startService();
    client = service.client();
    await client.terminals.createTerminal({
      owner: terminal.owner,
      agent: 'coder',
      id: terminal.id,
      command: ['/bin/sleep', '1000'],
    });
  });
  afterAll(async () => {
    await service[Symbol.asyncDispose]();
  });

  it('is looked for in every request that has a place for one', () => {
    const services = [TerminalService, SessionService, GrantService, ServerService];
    const places = services.flatMap(({ name, methods }) =>
      methods.flatMap((method) => timesOf(method.input, `${name}.${method.name}`)),
    );
    expect(places.sort()).toEqual(Object.keys(calls).sort());
  });

  it.each(
    Object.entries(calls).flatMap(([place, { field, call }]) =>
      [
        ['nanos above a second', { seconds: 1n, nanos: 1_000_000_000 }],
        ['nanos below a second', { seconds: -1n, nanos: -1_000_000_000 }],
        ['seconds and nanos of two signs', { seconds: 1n, nanos: -1 }],
        ['more seconds than there are', { seconds: 9_000_000_000_000n, nanos: 0 }],
        ['what is negative', { seconds: -5n, nanos: 0 }],
      ].map(([what, value]) => ({
        place,
        what: String(what),
        field: field ?? place.replace(/.*\./, ''),
        refused: () => call(client, value as Pair),
      })),
    ),
  )('is refused by name: $place with $what', async ({ field, refused }) => {
    await expect(refused()).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      reason: 'FIELD_INVALID',
      violations: [{ field }],
    });
  });

  it('does not lose what is less than a millisecond', async () => {
    const idle = (nanos: number) =>
      client.terminals.wait({
        terminal,
        condition: { case: 'idle', value: { seconds: 0n, nanos } },
      });
    await expect(idle(1)).resolves.toBeDefined();
    await expect(idle(0)).rejects.toMatchObject({ violations: [{ field: 'idle' }] });
  });
});
