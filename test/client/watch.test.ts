import { connect } from '../../src/client/connect.js';
import type { Pacing } from '../../src/client/reconnection.js';
import type { WatchEvent } from '../../src/client/watch.js';
import { ClosingReason } from '../../src/gen/public/grantty/v1/stream_pb.js';
import {
  certificates,
  failure,
  fakeServer,
  type Handlers,
  responseOf,
  status,
  tokenOf,
  type WatchCall,
} from './fakeServer.js';

/** Never waits; notes how long it would have. */
function recordedPacing(): Pacing & { waits: number[] } {
  const waits: number[] = [];
  let now = 0;
  return {
    waits,
    now: () => now,
    random: () => 1,
    sleep: async (ms) => {
      waits.push(ms);
      now += ms;
    },
  };
}

const started = (nextSeq: bigint, logEpoch = 1) =>
  responseOf({ case: 'started', value: { nextSeq, firstSeq: 1n, logEpoch } });
const output = (seq: bigint, text = `<${seq}>`) =>
  responseOf({ case: 'output', value: { seq, data: Buffer.from(text) } });
const exited = (seq: bigint) =>
  responseOf({ case: 'exited', value: { seq, status: { exitCode: 0 } } });
const expiring = responseOf({ case: 'expiring', value: {} });
const closing = (reason: ClosingReason) => responseOf({ case: 'closing', value: { reason } });

function afterSeq(call: WatchCall): bigint | undefined {
  const { start } = call.request;
  return start.case === 'after' ? start.value.afterSeq : undefined;
}

async function watched(
  handlers: Handlers,
  options: { pacing?: Pacing; token?: () => Promise<string> } = {},
): Promise<WatchEvent[]> {
  await using server = await fakeServer(handlers);
  using client = connect({
    address: server.address,
    ca: certificates.ca,
    token: options.token ?? (async () => 'token-1'),
  });
  const events: WatchEvent[] = [];
  const pacing = options.pacing ?? recordedPacing();
  for await (const event of client.watch({ terminal: { id: 't' } }, { pacing })) events.push(event);
  return events;
}

const summary = (events: readonly WatchEvent[]) =>
  events.map((event) => ('seq' in event.value ? `${event.case} ${event.value.seq}` : event.case));

describe('watch', () => {
  it('gives the events in order and ends where the server does', async () => {
    const events = await watched({
      watch: (call) => {
        for (const message of [started(1n), output(1n), exited(2n)]) call.write(message);
        call.write(closing(ClosingReason.EXITED));
        call.end();
      },
    });
    expect(summary(events)).toEqual(['started', 'output 1', 'exited 2', 'closing']);
  });

  it('goes on after the last seq when the connection is lost, and tells no event twice', async () => {
    const positions: unknown[] = [];
    const events = await watched({
      watch: (call) => {
        const { start } = call.request;
        positions.push(start.case === 'after' ? [start.value.afterSeq, start.value.logEpoch] : []);
        call.write(started(3n, 7));
        if (positions.length === 1) {
          call.write(output(1n));
          call.write(output(2n));
          // Whatever the client has not read by then is lost, as with a real crash.
          setImmediate(() => call.emit('error', failure({ code: status.UNAVAILABLE })));
        } else {
          call.write(output(2n));
          call.write(output(3n));
          call.end();
        }
      },
    });
    expect(summary(events)).toEqual(['started', 'output 1', 'output 2', 'output 3']);
    expect(positions[0]).toEqual([]);
    expect(positions[1]).toEqual([expect.any(BigInt), 7]);
  });

  it('survives the crash and the restart of the server', async () => {
    const pacing: Pacing = {
      ...recordedPacing(),
      sleep: (ms) => new Promise((done) => setTimeout(done, ms / 4)),
    };
    const first = await fakeServer({
      watch: (call) => {
        call.write(started(1n));
        call.write(output(1n));
      },
    });
    using client = connect({
      address: first.address,
      ca: certificates.ca,
      token: async () => 'token-1',
    });
    const events: WatchEvent[] = [];
    const port = Number(first.address.split(':')[1]);
    let second: Awaited<ReturnType<typeof fakeServer>> | undefined;
    for await (const event of client.watch({ terminal: { id: 't' } }, { pacing })) {
      events.push(event);
      if (event.case !== 'output' || event.value.seq !== 1n) continue;
      first.cut();
      second = await fakeServer(
        {
          watch: (call) => {
            call.write(started(2n));
            call.write(output((afterSeq(call) ?? 0n) + 1n));
            call.end();
          },
        },
        port,
      );
    }
    await second?.[Symbol.asyncDispose]();
    expect(summary(events)).toEqual(['started', 'output 1', 'output 2']);
  });

  it('starts a live watch again after what it missed, not after what is live then', async () => {
    await using server = await fakeServer({
      watch: (call) => {
        call.write(started(8n));
        if (call.request.start.case === 'live') {
          setImmediate(() => call.emit('error', failure({ code: status.UNAVAILABLE })));
        } else {
          call.write(output((afterSeq(call) ?? 0n) + 1n));
          call.end();
        }
      },
    });
    using client = connect({
      address: server.address,
      ca: certificates.ca,
      token: async () => 'token-1',
    });
    const events: WatchEvent[] = [];
    const request = { terminal: { id: 't' }, start: { case: 'live', value: true } } as const;
    for await (const event of client.watch(request, { pacing: recordedPacing() })) {
      events.push(event);
    }
    expect(summary(events)).toEqual(['started', 'output 8']);
  });

  it('moves to a renewed token before the old one ends, without a gap', async () => {
    let token = 'token-1';
    const seen: string[] = [];
    const events = await watched(
      {
        watch: (call) => {
          seen.push(tokenOf(call));
          call.write(started(1n));
          if (seen.length === 1) {
            call.write(output(1n));
            token = 'token-2';
            call.write(expiring);
          } else {
            call.write(output((afterSeq(call) ?? 0n) + 1n));
            call.end();
          }
        },
      },
      { token: async () => token },
    );
    expect(seen).toEqual(['token-1', 'token-2']);
    expect(summary(events)).toEqual(['started', 'output 1', 'output 2']);
  });

  it('goes on with a renewed token after the old one has ended', async () => {
    let token = 'token-1';
    const expired = failure({ code: status.UNAUTHENTICATED, reason: 'TOKEN_EXPIRED' });
    const events = await watched(
      {
        watch: (call) => {
          call.write(started(1n));
          if (tokenOf(call) === 'token-1') {
            call.write(output(1n));
            call.write(expiring);
            call.write(closing(ClosingReason.TOKEN_EXPIRED));
            setTimeout(() => {
              token = 'token-2';
              call.emit('error', expired);
            }, 20);
          } else {
            call.write(output((afterSeq(call) ?? 0n) + 1n));
            call.end();
          }
        },
      },
      { token: async () => token },
    );
    expect(summary(events)).toEqual(['started', 'output 1', 'output 2']);
  });

  it('throws TOKEN_EXPIRED when the token is not renewed', async () => {
    const expired = failure({ code: status.UNAUTHENTICATED, reason: 'TOKEN_EXPIRED' });
    const watching = watched({
      watch: (call) => {
        call.write(started(1n));
        setImmediate(() => call.emit('error', expired));
      },
    });
    await expect(watching).rejects.toMatchObject({ reason: 'TOKEN_EXPIRED' });
  });

  it.each([
    ['GRANT_REVOKED', status.PERMISSION_DENIED],
    ['SEQ_TRIMMED', status.OUT_OF_RANGE],
    ['LOG_REWOUND', status.ABORTED],
  ])('throws %s at once: another attempt could not help', async (reason, code) => {
    let calls = 0;
    const watching = watched({
      watch: (call) => {
        calls += 1;
        call.write(started(1n));
        setImmediate(() => call.emit('error', failure({ code, reason })));
      },
    });
    await expect(watching).rejects.toMatchObject({ reason });
    expect(calls).toBe(1);
  });

  describe('when a power cut took the end of the log', () => {
    const rewound = () =>
      failure({
        code: status.ABORTED,
        reason: 'LOG_REWOUND',
        metadata: { last_seq: '1', log_epoch: '2' },
      });

    it('goes on from the last seq that holds, under the new epoch, and says so in between', async () => {
      const starts: unknown[] = [];
      const told: string[] = [];
      let breakCall = () => {};
      await using server = await fakeServer({
        watch: (call) => {
          const { start } = call.request;
          starts.push(start.case === 'after' ? start.value : undefined);
          if (starts.length === 1) {
            for (const message of [started(1n), output(1n), output(2n)]) call.write(message);
            breakCall = () => call.emit('error', failure({ code: status.UNAVAILABLE }));
          } else if (starts.length === 2) {
            call.emit('error', rewound());
          } else {
            for (const message of [started(3n, 2), output(2n), exited(3n)]) call.write(message);
            call.end();
          }
        },
      });
      using client = connect({
        address: server.address,
        ca: certificates.ca,
        token: async () => 'token-1',
      });
      const options = {
        pacing: recordedPacing(),
        onRewind: (seq: bigint) => told.push(`rewind ${seq}`),
      };
      for await (const event of client.watch({ terminal: { id: 't' } }, options)) {
        told.push(...summary([event]));
        if (told.length === 3) breakCall();
      }
      expect(told).toEqual(['started', 'output 1', 'output 2', 'rewind 1', 'output 2', 'exited 3']);
      expect(starts).toEqual([
        undefined,
        expect.objectContaining({ afterSeq: 2n, logEpoch: 1 }),
        expect.objectContaining({ afterSeq: 1n, logEpoch: 2 }),
      ]);
    });

    it('does so for a position that was kept from an earlier run too', async () => {
      const told: bigint[] = [];
      await using server = await fakeServer({
        watch: (call) => {
          if (afterSeq(call) === 9n) call.emit('error', rewound());
          else {
            for (const message of [started(3n, 2), output(2n)]) call.write(message);
            call.end();
          }
        },
      });
      using client = connect({
        address: server.address,
        ca: certificates.ca,
        token: async () => 'token-1',
      });
      const events: WatchEvent[] = [];
      const start = { case: 'after', value: { afterSeq: 9n, logEpoch: 1 } } as const;
      const watching = client.watch(
        { terminal: { id: 't' }, start },
        { pacing: recordedPacing(), onRewind: (seq) => told.push(seq) },
      );
      for await (const event of watching) events.push(event);
      expect(told).toEqual([1n]);
      expect(summary(events)).toEqual(['started', 'output 2']);
    });
  });

  it('keeps the present epoch, and not the one that it began in', async () => {
    const epochs: unknown[] = [];
    let breakCall = () => {};
    await using server = await fakeServer({
      watch: (call) => {
        const { start } = call.request;
        epochs.push(start.case === 'after' ? start.value.logEpoch : undefined);
        call.write(started(9n, epochs.length));
        call.write(output(BigInt(epochs.length)));
        if (epochs.length === 3) call.end();
        breakCall = () => call.emit('error', failure({ code: status.UNAVAILABLE }));
      },
    });
    using client = connect({
      address: server.address,
      ca: certificates.ca,
      token: async () => 'token-1',
    });
    const watching = client.watch({ terminal: { id: 't' } }, { pacing: recordedPacing() });
    for await (const event of watching) {
      if (event.case === 'output' && event.value.seq < 3n) breakCall();
    }
    expect(epochs).toEqual([undefined, 1, 2]);
  });

  it('does not try again what failed before it was open for the first time', async () => {
    let calls = 0;
    const watching = watched({
      watch: (call) => {
        calls += 1;
        call.emit('error', failure({ code: status.UNAVAILABLE, reason: 'SERVER_DRAINING' }));
      },
    });
    await expect(watching).rejects.toMatchObject({ reason: 'SERVER_DRAINING' });
    expect(calls).toBe(1);
  });

  it('waits longer from attempt to attempt, up to a bound, and gives up after a minute', async () => {
    const pacing = recordedPacing();
    let calls = 0;
    const watching = watched(
      {
        watch: (call) => {
          calls += 1;
          if (calls === 1) call.write(started(1n));
          setImmediate(() => call.emit('error', failure({ code: status.UNAVAILABLE })));
        },
      },
      { pacing },
    );
    await expect(watching).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(pacing.waits.slice(0, 8)).toEqual([100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    expect(pacing.waits.reduce((sum, ms) => sum + ms)).toBeGreaterThan(60_000);
    expect(pacing.waits.reduce((sum, ms) => sum + ms)).toBeLessThan(70_000);
  });

  it('waits as long as the server asks for', async () => {
    const pacing = recordedPacing();
    let calls = 0;
    await watched(
      {
        watch: (call) => {
          calls += 1;
          call.write(started(1n));
          const draining = { code: status.UNAVAILABLE, reason: 'SERVER_DRAINING' };
          if (calls > 1) call.end();
          else setImmediate(() => call.emit('error', failure({ ...draining, retryAfterMs: 1234 })));
        },
      },
      { pacing },
    );
    expect(pacing.waits).toEqual([1234]);
  });

  it('cancels the call when the loop is left', async () => {
    let cancelled: (() => void) | undefined;
    const seen = new Promise<void>((resolve) => {
      cancelled = resolve;
    });
    await using server = await fakeServer({
      watch: (call) => {
        call.on('cancelled', () => cancelled?.());
        call.write(started(1n));
      },
    });
    using client = connect({
      address: server.address,
      ca: certificates.ca,
      token: async () => 'token-1',
    });
    for await (const event of client.watch({ terminal: { id: 't' } })) {
      expect(event.case).toBe('started');
      break;
    }
    await seen;
  });

  it('ends with the reason of the signal', async () => {
    await using server = await fakeServer({ watch: (call) => call.write(started(1n)) });
    using client = connect({
      address: server.address,
      ca: certificates.ca,
      token: async () => 'token-1',
    });
    const abort = new AbortController();
    const watching = (async () => {
      for await (const _ of client.watch({ terminal: { id: 't' } }, { signal: abort.signal })) {
        abort.abort(new Error('enough'));
      }
    })();
    await expect(watching).rejects.toThrow('enough');
  });

  it('holds the server back while the caller does not read', async () => {
    const CHUNK = Buffer.alloc(64 * 1024, 'x');
    const TOTAL = 512;
    let written = 0;
    await using server = await fakeServer({
      watch: async (call) => {
        call.write(started(1n));
        for (let seq = 1n; seq <= TOTAL; seq++) {
          written += 1;
          const value = { seq, data: CHUNK };
          if (!call.write(responseOf({ case: 'output', value }))) {
            await new Promise((resolve) => call.once('drain', resolve));
          }
        }
        call.end();
      },
    });
    using client = connect({
      address: server.address,
      ca: certificates.ca,
      token: async () => 'token-1',
    });
    let received = 0;
    let held = 0;
    for await (const event of client.watch({ terminal: { id: 't' } })) {
      if (event.case === 'started') {
        // Until the server, which is in this process, has not written for many turns: its window is used up.
        for (let turns = 0, before = -1; turns < 1_000; turns += 1) {
          if (before !== written) turns = 0;
          before = written;
          await new Promise((resolve) => setImmediate(resolve));
        }
        held = written;
      }
      if (event.case === 'output') received += 1;
    }
    expect(received).toBe(TOTAL);
    // 4 MiB of window and what the two ends buffer, of 32 MiB.
    expect(held).toBeLessThan(TOTAL / 3);
  });
});
