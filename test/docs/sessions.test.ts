/** docs/sessions.md against what it describes: its loops are run as they stand there. */
import { readFile } from 'node:fs/promises';
import { openOwnSupervisor } from '../../src/app/ownSupervisor.js';
import { openSessions, type SessionsOptions } from '../../src/app/sessions.js';
import { WaitReason } from '../../src/gen/public/grantty/v1/session_service_pb.js';
import { AgentScope } from '../../src/session/agent.js';
import { startSessions, workerEntry } from '../session/liveSessions.js';
import { temporaryDir } from '../store/temporaryDir.js';
import { plainBash } from '../support/plainBash.js';
import { name, owner } from '../support/registry.js';
import { startService } from '../support/service.js';

const page = await readFile(new URL('../../docs/sessions.md', import.meta.url), 'utf8');
const loops = [...page.matchAll(/^```ts\n(.*?)^```/gms)].map(([, block = '']) => block);
const [inProcess = '', around = '', overGrpc = ''] = loops;

type AsyncCode = (...values: readonly unknown[]) => Promise<unknown>;
const AsyncFunction = (async () => {}).constructor as new (...parts: string[]) => AsyncCode;

function run(code: string, names: Readonly<Record<string, unknown>>): Promise<unknown> {
  return new AsyncFunction(...Object.keys(names), code)(...Object.values(names));
}

/** Types these texts, one after the other, and remembers what it was shown. */
function scripted(texts: readonly string[]) {
  const shown: string[] = [];
  const model = async (seen: string) => {
    shown.push(seen);
    return texts[shown.length - 1];
  };
  return { shown, model };
}

describe('an agent’s loop of docs/sessions.md', () => {
  it('has ten lines at most', () => {
    const lines = loops.map((code) => code.trimEnd().split('\n').length);
    expect(lines.map((count) => count <= 10)).toEqual([true, true, true]);
  });

  it('runs with the library as it stands there', async () => {
    await using live = await startSessions();
    const { service } = live;
    const { shown, model } = scripted(['pwd', 'read x; echo "got $x"', 'this']);
    await run(inProcess, { AgentScope, service, owner, name: name('loop'), cwd: '/tmp', model });
    expect(shown).toEqual([
      expect.stringMatching(/[#$] $/),
      expect.stringMatching(/^pwd\n\/tmp\n.*[#$] \n\[stdin_read\]$/),
      expect.stringMatching(/^read x; .*\n\n\[(stdin_read|inferred_idle)\]$/),
      expect.stringMatching(/^this\ngot this\n.*[#$] \n\[stdin_read\]$/),
    ]);
    const all = await live.supervisor.list();
    expect(all.map(({ record }) => record.state)).toEqual(['exited']);
  });

  it('runs within what it stands in, which leaves nothing open', async () => {
    await using dir = await temporaryDir();
    const { shown, model } = scripted(['echo one']);
    await run(around.replace('// … the loop', inProcess), {
      AgentScope,
      openSessions: (options: SessionsOptions) =>
        openSessions({ ...options, workerEntry, bash: plainBash }),
      openOwnSupervisor,
      stateDir: dir.path,
      owner: String(process.getuid?.()),
      name: 'loop',
      cwd: '/tmp',
      model,
    });
    expect(shown).toEqual([
      expect.stringMatching(/[#$] $/),
      expect.stringMatching(/^echo one\none\n.*[#$] \n\[stdin_read\]$/),
    ]);
    // Its lock is free again.
    await using _next = await openOwnSupervisor({ stateDir: dir.path });
  });

  it('runs over gRPC as it stands there', async () => {
    await using server = await startService({ bash: plainBash });
    const client = server.client();
    const { shown, model } = scripted(['echo one', 'sleep 0.5; echo two']);
    await run(overGrpc, { client, model, WaitReason });
    expect(shown).toEqual([
      expect.stringMatching(/[#$] $/),
      expect.stringMatching(/^echo one\none\n.*[#$] \n\[STDIN_READ\]$/),
      expect.stringMatching(/^sleep 0.5; echo two\ntwo\n.*[#$] \n\[STDIN_READ\]$/),
    ]);
    expect((await client.sessions.listSessions({ agent: 'coder' })).sessions).toEqual([]);
  });
});
