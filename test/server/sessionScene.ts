/** A server whose sessions do what a test says, over terminals without processes. */
import {
  type SendResponse,
  SessionService,
} from '../../src/gen/public/grantty/v1/session_service_pb.js';
import { FakeBackend, type FakeSession } from '../session/fakeBackend.js';
import type { FakeTerminal } from '../support/fakeSupervisor.js';
import { Harness } from './harness.js';

export const sessions = SessionService.method;

export type SendEvent = SendResponse['event'];

export interface Scene extends AsyncDisposable {
  readonly harness: Harness;
  readonly backend: FakeBackend;
  /** May do everything. */
  readonly token: string;
  spawn(name?: string): Promise<Spawned>;
}

export interface Spawned {
  readonly ref: { readonly owner: string; readonly id: string };
  readonly session: FakeSession;
  readonly terminal: FakeTerminal;
}

/** Of type `fake`. */
export async function startScene(): Promise<Scene> {
  const harness = await Harness.start();
  const { supervisor, sessions: host } = harness;
  const backend = new FakeBackend();
  backend.onSpawn = async ({ owner, sessionId, resource, name = '' }) => {
    if (resource.adopt) return;
    await supervisor.add({
      id: sessionId as never,
      owner: owner.owner,
      agent: owner.agent,
      session: (resource.session ?? 'default') as never,
      backend: 'fake',
      name,
    });
  };
  host.service.registerBackend(backend);
  const token = await harness.token();
  return {
    harness,
    backend,
    token,
    async spawn(name = '') {
      const request = { owner: '1000', agent: 'coder', type: 'fake', name };
      const { session } = await harness.unary(sessions.spawn, request, token);
      const id = session?.terminal?.id ?? '';
      const terminal = supervisor.terminals.get(`1000/${id}`);
      if (!terminal) throw new Error('nothing was spawned');
      return { ref: { owner: '1000', id }, session: backend.last, terminal };
    },
    [Symbol.asyncDispose]: () => harness[Symbol.asyncDispose](),
  };
}
