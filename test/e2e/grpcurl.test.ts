import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startService, type TestService } from '../support/service.js';
import { onPath, skipAloud } from '../support/skipAloud.js';

const run = promisify(execFile);

/** Where `go install` puts programs, too. */
const gobin = join(homedir(), 'go/bin');

describe('grpcurl, a client that knows nothing of us but reflection', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });

  afterAll(() => service[Symbol.asyncDispose]());

  it('lists the services, and calls GetTerminal with a token', async () => {
    process.env.PATH = `${process.env.PATH}:${gobin}`;
    if (!onPath('grpcurl'))
      return skipAloud(
        'grpcurl is not installed (go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3)',
      );
    const ca = join(service.stateDir, 'ca.pem');
    await writeFile(ca, service.ca);
    const grpcurl = (...args: string[]) => run('grpcurl', ['-cacert', ca, ...args]);

    const { stdout: services } = await grpcurl(service.address, 'list');
    expect(services.trim().split('\n')).toEqual(
      expect.arrayContaining([
        'grantty.v1.GrantService',
        'grantty.v1.ServerService',
        'grantty.v1.SessionService',
        'grantty.v1.TerminalService',
        'grpc.health.v1.Health',
      ]),
    );
    const { stdout: described } = await grpcurl(
      service.address,
      'describe',
      'grantty.v1.TerminalService.Attach',
    );
    expect(described).toContain('stream .grantty.v1.AttachRequest');

    await service
      .client()
      .terminals.createTerminal({ agent: 'coder', id: 'seen', command: ['true'] });
    const method = 'grantty.v1.TerminalService/GetTerminal';
    const request = ['-d', '{"terminal":{"id":"seen"}}'];
    const authorization = `authorization: Bearer ${await service.token()}`;
    const { stdout } = await grpcurl('-H', authorization, ...request, service.address, method);
    expect(JSON.parse(stdout).terminal).toMatchObject({
      ref: { id: 'seen' },
      agent: 'coder',
      command: ['true'],
    });

    const refused = await grpcurl(...request, service.address, method).catch((error) => error);
    expect(refused.stderr).toContain('Unauthenticated');
    expect(refused.stderr).toContain('TOKEN_MISSING');
  });
});
