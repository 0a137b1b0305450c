import { jest } from '@jest/globals';
import type { ExitEvent } from '../../src/core/event.js';
import { EventLog } from '../../src/store/eventLog.js';
import type { Supervisor } from '../../src/supervisor/api.js';
import { createInProcessSupervisor } from '../../src/supervisor/inProcess.js';
import { temporaryDir } from '../store/temporaryDir.js';
import { heldBack } from '../support/heldBack.js';
import { createSpec, owner, silentLog } from '../support/registry.js';

/** What happened to the log and to its reader, in order. */
type Step = 'synced' | 'output' | 'exit';

describe('log.sync', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /**
   * Runs a program that prints, waits until `meanwhile` is over and longer than an interval, prints
   * again and ends.
   */
  async function stepsOf(
    logSync: 'interval' | 'batch' | 'off',
    meanwhile: (steps: readonly Step[]) => Promise<void> = async () => {},
  ): Promise<Step[]> {
    const steps: Step[] = [];
    const sync = EventLog.prototype.sync;
    jest.spyOn(EventLog.prototype, 'sync').mockImplementation(async function (this: EventLog) {
      await sync.call(this);
      steps.push('synced');
    });
    await using dir = await temporaryDir();
    await using supervisor: Supervisor = await createInProcessSupervisor({
      stateDir: dir.path,
      stateDirId: 'test',
      isolation: { mode: 'shared-uid', owners: owner },
      version: 'test',
      log: silentLog,
      locator: () => 'test:',
      logSync,
    });
    await using first = await heldBack();
    await using second = await heldBack();
    const [a, b] = [first, second].map(({ command }) => command.join(' '));
    const script = `${a}; printf one; ${b}; sleep 0.3; printf two`;
    const { record } = await supervisor.create(createSpec(['sh', '-c', script]));
    const stop = new AbortController();
    const { items } = await supervisor.openOutput(record, stop.signal);
    await first.letGo();
    let exit: ExitEvent | undefined;
    for await (const item of items) {
      if (item.kind !== 'events') continue;
      for (const event of item.events) {
        if (event.type === 'pty.output') {
          steps.push('output');
          if (steps.filter((step) => step === 'output').length > 1) continue;
          await meanwhile(steps);
          await second.letGo();
        } else {
          exit = event;
          steps.push('exit');
          stop.abort();
        }
      }
    }
    expect(exit).toMatchObject({ exitCode: 0 });
    return steps.slice(0, steps.indexOf('exit') + 1);
  }

  it('batch has output on disk before anybody sees it', async () => {
    const steps = await stepsOf('batch');
    expect(steps).toContain('output');
    for (const [n, step] of steps.entries()) {
      if (step === 'output') expect(steps[n - 1]).toBe('synced');
    }
  });

  it('interval has it there soon after, and holds nobody up', async () => {
    const steps = await stepsOf('interval', async (sofar) => {
      while (!sofar.includes('synced')) await new Promise((resolve) => setImmediate(resolve));
    });
    expect(steps.slice(0, 2)).toEqual(['output', 'synced']);
  });

  it('off leaves it to the kernel; the exit is synced all the same', async () => {
    const steps = await stepsOf('off');
    expect(steps.slice(0, 2)).toEqual(['output', 'output']);
    expect(steps.filter((step) => step !== 'output')).toEqual(['synced', 'exit']);
  });
});
