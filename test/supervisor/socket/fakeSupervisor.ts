/** A supervisor of which a test writes the methods that it is about. */

import type {
  InputChannel,
  Lease,
  Supervisor,
  TerminalSnapshot,
} from '../../../src/supervisor/api.js';
import type { SocketLog } from '../../../src/supervisor/socket/protocol.js';
import { createSpec } from '../../support/registry.js';

export function fakeSupervisor(methods: Partial<Supervisor>): Supervisor {
  const base: Partial<Supervisor> = { fence: async () => {}, ...methods };
  return new Proxy(base as Supervisor, {
    get(target, property: keyof Supervisor) {
      if (property in target) return target[property];
      throw new TypeError(`the test does not expect ${String(property)}`);
    },
  });
}

export function fakeSnapshot(id: string, title = ''): TerminalSnapshot {
  const { tuple, env: _env, ...spec } = createSpec(['true'], { title });
  return {
    record: {
      ...tuple,
      ...spec,
      id: id as typeof tuple.id,
      state: 'exited',
      createdAt: 1,
      uid: `uid-${id}`,
      instance: 1,
      exit: { exitCode: 0 },
      exitedAt: 2,
      updatedAt: 3,
      logEpoch: 1,
    },
    firstSeq: 1,
    nextSeq: 4,
    attachments: [],
  };
}

/** A channel whose chunks the test settles, in whatever order. */
export class FakeChannel implements InputChannel {
  readonly attachmentId = 'attachment';
  readonly resumed = false;
  taken = 0;
  disposed = 0;
  readonly sent: {
    readonly data: Buffer;
    readonly lease: Lease;
    readonly take: () => void;
    readonly refuse: (error: Error) => void;
  }[] = [];
  #arrival: (() => void) | undefined;

  send(data: Uint8Array, lease: Lease): Promise<number> {
    return new Promise((resolve, reject) => {
      const take = () => {
        this.taken += data.length;
        resolve(this.taken);
      };
      this.sent.push({ data: Buffer.from(data), lease, take, refuse: reject });
      this.#arrival?.();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.disposed += 1;
  }

  /** Resolves once `count` chunks have arrived. */
  async arrived(count: number): Promise<void> {
    while (this.sent.length < count) {
      await new Promise<void>((resolve) => {
        this.#arrival = resolve;
      });
    }
  }
}

export interface RecordingLog extends SocketLog {
  readonly lines: { readonly level: string; readonly fields: object; readonly message: string }[];
  /** Resolves with the fields of the first line that says `message`. */
  said(message: string): Promise<object>;
}

export function recordingLog(): RecordingLog {
  const lines: { level: string; fields: object; message: string }[] = [];
  const waits: (() => void)[] = [];
  const record = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message });
    for (const wake of waits.splice(0)) wake();
  };
  return {
    lines,
    info: record('info'),
    warn: record('warn'),
    error: record('error'),
    async said(message) {
      for (;;) {
        const line = lines.find((each) => each.message === message);
        if (line) return line.fields;
        await new Promise<void>((resolve) => {
          waits.push(resolve);
        });
      }
    },
  };
}
