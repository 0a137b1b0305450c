import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openOwnSupervisor } from '../../src/app/ownSupervisor.js';
import { openSessions } from '../../src/app/sessions.js';
import { AgentScope } from '../../src/session/agent.js';
import { plainBash } from '../support/plainBash.js';
import { workerEntry } from '../support/workerEntry.js';

describe('a supervisor of a program’s own', () => {
  it('serves sessions without a server, and lets no second one into its directory', async () => {
    const stateDir = await mkdtemp(join(tmpdir(), 'grantty-own-'));
    try {
      await using supervisor = await openOwnSupervisor({ stateDir });
      await expect(openOwnSupervisor({ stateDir })).rejects.toThrow(String(process.pid));
      await using sessions = openSessions({ supervisor, stateDir, bash: plainBash, workerEntry });
      await using agent = new AgentScope(String(process.getuid?.()), 'own');
      const { sessionId } = await sessions.service.spawn(agent, { type: 'shell', cwd: '/tmp' });
      const send = sessions.service.startSend(agent, sessionId, { text: 'pwd', submit: true });
      const { viewport, waitReason } = await send.done;
      expect(waitReason).toBe('stdin_read');
      expect(viewport).toMatch(/^pwd\n\/tmp\n/);
      await sessions.service.kill(agent, sessionId, 'done');
    } finally {
      await rm(stateDir, { recursive: true });
    }
  });
});
