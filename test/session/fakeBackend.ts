/** A backend whose sessions do what a test says. */
import type {
  TerminalBackend,
  TerminalBackendSession,
  TerminalBackendSpawnSpec,
  TerminalReadRequest,
  TerminalReadResult,
  TerminalSendOperation,
  TerminalSendRequest,
  TerminalSendResult,
  TerminalSessionStatus,
  TerminalSignal,
} from '../../src/session/sessionTypes.js';

export const settledResult: TerminalSendResult = {
  viewport: 'done',
  waitReason: 'stdin_read',
  sessionStatus: { kind: 'running' },
  truncated: false,
};

export class FakeSession implements TerminalBackendSession {
  readonly motd = 'welcome';
  readonly pid = 4242;
  readonly closes: string[] = [];
  readonly signals: TerminalSignal[] = [];
  readonly reads: TerminalReadRequest[] = [];
  readonly sends: TerminalSendRequest[] = [];
  state: TerminalSessionStatus = { kind: 'running' };
  /** What `close` does. */
  onClose: () => Promise<void> = async () => {};
  /** Settles the send that was started last. */
  settle: (result?: TerminalSendResult) => void = () => {};
  fail: (error: unknown) => void = () => {};

  startSend(request: TerminalSendRequest): TerminalSendOperation {
    this.sends.push(request);
    const done = new Promise<TerminalSendResult>((resolve, reject) => {
      this.settle = (result = settledResult) => resolve(result);
      this.fail = reject;
    });
    return { done, readOutput: () => ({ delta: '', truncated: false }), cancel: () => true };
  }

  read(request: TerminalReadRequest): TerminalReadResult {
    this.reads.push(request);
    const counts = { totalLines: 1, lineBegin: 0, lineEnd: 1, droppedLines: 0 };
    return { text: 'line\n', truncated: false, ...counts };
  }

  async signal(signal: TerminalSignal) {
    this.signals.push(signal);
    return { delivered: true, targetPgid: 99 };
  }

  status(): TerminalSessionStatus {
    return this.state;
  }

  async close(reason: string): Promise<void> {
    this.closes.push(reason);
    await this.onClose();
  }
}

export class FakeBackend implements TerminalBackend {
  readonly specs: TerminalBackendSpawnSpec[] = [];
  readonly sessions: FakeSession[] = [];
  /** Runs before a spawn succeeds; may wait or reject. */
  onSpawn: (spec: TerminalBackendSpawnSpec) => Promise<void> = async () => {};

  constructor(readonly type = 'fake') {}

  async spawn(spec: TerminalBackendSpawnSpec): Promise<FakeSession> {
    this.specs.push(spec);
    await this.onSpawn(spec);
    const session = new FakeSession();
    this.sessions.push(session);
    return session;
  }

  get last(): FakeSession {
    const session = this.sessions.at(-1);
    if (!session) throw new Error('nothing was spawned');
    return session;
  }
}

/** Something that a test opens when it is time. */
export function gate(): {
  readonly opened: Promise<void>;
  open(): void;
  fail(error: unknown): void;
} {
  let open = () => {};
  let fail: (error: unknown) => void = () => {};
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { opened, open, fail };
}
