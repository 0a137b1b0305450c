/** What becomes of terminals when their supervisor is told to end. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRecord } from '../../src/store/metadata.js';
import { resourceDir } from '../../src/store/paths.js';
import type { CreateSpec, Supervisor } from '../../src/supervisor/api.js';
import { createSpec, startRegistry } from '../support/registry.js';

const HEEDLESS = 'trap "" TERM HUP; echo ready; while :; do sleep 0.1; done';
const ORDERLY = 'trap "echo bye; exit 7" TERM; echo ready; while :; do sleep 0.1; done';

describe('terminals whose supervisor ends', () => {
  let stateDir: string;

  beforeEach(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-end-'));
  });

  afterEach(async () => {
    await rm(stateDir, { recursive: true });
  });

  /** Creates one that has printed something. */
  async function running(supervisor: Supervisor, script: string): Promise<CreateSpec> {
    const spec = createSpec(['sh', '-c', script]);
    await supervisor.create(spec);
    const { items, nextSeq } = await supervisor.openOutput(
      spec.tuple,
      new AbortController().signal,
    );
    if (nextSeq === 1) for await (const item of items) if (item.kind === 'events') break;
    return spec;
  }

  async function ends(spec: CreateSpec): Promise<Record<string, unknown>[]> {
    const text = await readFile(join(resourceDir(stateDir, spec.tuple), 'events.jsonl'), 'utf8');
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter(({ type }) => type === 'process.exit');
  }

  it('end in good order where they can, by force after the grace, and once on record each', async () => {
    const { supervisor } = await startRegistry({ stateDir });
    const orderly = await running(supervisor, ORDERLY);
    const heedless = await running(supervisor, HEEDLESS);
    const begin = performance.now();
    await supervisor[Symbol.asyncDispose]();
    expect(performance.now() - begin).toBeGreaterThan(4_500);
    const reason = 'supervisor-stopped';
    expect(await ends(orderly)).toEqual([expect.objectContaining({ exit_code: 7, reason })]);
    expect(await ends(heedless)).toEqual([
      expect.objectContaining({ exit_code: 137, signal: 'SIGKILL', reason }),
    ]);
    for (const spec of [orderly, heedless]) {
      const record = await readRecord(resourceDir(stateDir, spec.tuple));
      expect(record).toMatchObject({ state: 'exited', exit: { reason } });
      expect(record.socket).toBeUndefined();
    }

    // The next supervisor has nothing to mend.
    const next = await startRegistry({ stateDir });
    await next.supervisor[Symbol.asyncDispose]();
    expect(await ends(orderly)).toHaveLength(1);
    expect(await ends(heedless)).toHaveLength(1);
  }, 30_000);

  it('are killed at once when the end cannot wait', async () => {
    const hurry = new AbortController();
    const { supervisor } = await startRegistry({ stateDir, hurry: hurry.signal });
    const heedless = await running(supervisor, HEEDLESS);
    const begin = performance.now();
    const ended = supervisor[Symbol.asyncDispose]();
    hurry.abort();
    await ended;
    expect(performance.now() - begin).toBeLessThan(4_900);
    expect(await ends(heedless)).toEqual([
      expect.objectContaining({ signal: 'SIGKILL', reason: 'supervisor-stopped' }),
    ]);
  }, 30_000);
});
