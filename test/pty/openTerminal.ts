/** A PTY of a test: what it printed, waiting for a text in it, and its end with the test. */
import { randomBytes } from 'node:crypto';
import { afterEach } from '@jest/globals';
import { endTree, type TreeMarks } from '../../src/pty/processTree.js';
import { openPty, type Pty, type PtySpec } from '../../src/pty/pty.js';

export interface TestTerminal {
  readonly pty: Pty;
  readonly marks: TreeMarks;
  /** Everything read so far. */
  readonly output: () => Buffer;
  /** Resolves with all output when `text` is in it, and rejects when the process exits without. */
  readonly seen: (text: string) => Promise<string>;
}

export const testEnvironment = { PATH: '/usr/bin:/bin', TERM: 'xterm', LANG: 'C.UTF-8' };

const opened: { readonly pty: Pty; readonly marks: TreeMarks }[] = [];

afterEach(async () => {
  await Promise.all(
    opened.splice(0).map(async ({ pty, marks }) => {
      pty.close();
      await endTree({ ...marks, ttyDevice: 0 }, { signals: ['SIGKILL'], graceMs: 5_000 });
      await pty.exit;
    }),
  );
});

export function openTerminal(
  command: readonly string[],
  spec: Partial<PtySpec> = {},
): TestTerminal {
  const chunks: Buffer[] = [];
  const watchers = new Set<() => void>();
  const nonce = randomBytes(8).toString('hex');
  const { env = testEnvironment, cwd = '/', size = { cols: 80, rows: 24 }, runAs } = spec;
  const pty = openPty(
    { command, env: { ...env, CTX_INSTANCE: nonce }, cwd, size, runAs },
    (chunk) => {
      chunks.push(Buffer.from(chunk));
      for (const watcher of watchers) watcher();
    },
  );
  const { pid, startTime, ttyDevice } = pty;
  const marks = { pid, startTime, sessionId: pid, ttyDevice, nonce };
  opened.push({ pty, marks });
  const output = () => Buffer.concat(chunks);
  const seen = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const look = () => {
        const all = output().toString('latin1');
        if (!all.includes(text)) return false;
        watchers.delete(look);
        resolve(all);
        return true;
      };
      watchers.add(look);
      if (look()) return;
      void pty.exit.then(() => {
        if (!look()) reject(new Error(`exited without "${text}": ${output().toString('latin1')}`));
      });
    });
  return { pty, marks, output, seen };
}

/** A shell that runs `script`. */
export function openScript(script: string, spec: Partial<PtySpec> = {}): TestTerminal {
  return openTerminal(['/bin/sh', '-c', script], spec);
}

/** Resolves after the whole life of another terminal: time for what must not come. */
export async function meanwhile(): Promise<void> {
  const { pty } = openTerminal(['/usr/bin/seq', '1', '2000']);
  await pty.exit;
  pty.close();
}

/** Resolves when `holds` does, looking again every few milliseconds. For what gives no event. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 5));
}
