import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, link, mkdir, rename, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import type { Name, TerminalTuple } from '../../src/core/names.js';
import { type TerminalRecord, terminalStates } from '../../src/core/terminal.js';
import { EventLog } from '../../src/store/eventLog.js';
import {
  makeResourceDir,
  readEnvironment,
  readRecord,
  scanResources,
  writeEnvironment,
  writePassingRecord,
  writeRecord,
} from '../../src/store/metadata.js';
import { resourceDir, tupleOfDir } from '../../src/store/paths.js';
import { recordFromJson, recordToJson } from '../../src/store/recordJson.js';
import { recoverResource } from '../../src/store/recoveredResource.js';
import { removeResource } from '../../src/store/resourceRemoval.js';
import { output } from './events.js';
import { temporaryDir } from './temporaryDir.js';

const name = (text: string) => text as Name;

const tuple: TerminalTuple = {
  owner: name('1000'),
  agent: name('coder'),
  session: name('default'),
  id: name('terminal-coder-default'),
};

const record: TerminalRecord = {
  ...tuple,
  cwd: '/workspace',
  command: ['/ctx/bin/tsh'],
  state: 'running',
  socket: '/run/user/1000/cortexfs/terminal/coder/default/main.sock',
  createdAt: 1735689600,
  uid: 'u1',
  instance: 1,
  size: { cols: 80, rows: 24 },
  title: '',
  labels: {},
  backend: 'command',
  name: '',
  onExit: 'leave',
  updatedAt: 1735689600123,
  logEpoch: 1,
};

/** The specification's example, to the byte. */
const EXAMPLE = `{
  "id": "terminal-coder-default",
  "agent": "coder",
  "session": "default",
  "owner": "1000",
  "cwd": "/workspace",
  "command": ["/ctx/bin/tsh"],
  "state": "running",
  "socket": "/run/user/1000/cortexfs/terminal/coder/default/main.sock",
  "created_at": 1735689600
}
`;

describe('meta.json', () => {
  it('begins with the very bytes of the example of the specification', () => {
    const json = recordToJson(record);
    const common = EXAMPLE.slice(0, -'\n}\n'.length);
    expect(json.slice(0, common.length)).toBe(common);
    expect(json.slice(common.length)).toMatch(/^,\n {2}"uid": "u1",\n/);
    expect(json.endsWith('\n}\n')).toBe(true);
  });

  it('of another writer, with the keys of the specification alone, is read', () => {
    const { uid: _uid, instance: _instance, ...expected } = record;
    expect(recordFromJson(EXAMPLE)).toEqual({
      ...expected,
      uid: '',
      instance: 0,
      updatedAt: 1735689600000,
    });
  });

  it('has its keys in a fixed order, and none for what is absent', () => {
    const full: TerminalRecord = {
      ...record,
      state: 'exited',
      pid: 42,
      marks: { nonce: 'n', startTime: 7, bootId: 'b' },
      createdBy: { issuer: 'i', subject: 's', grants: ['g'] },
      exit: { exitCode: 143, signal: 'SIGTERM', reason: 'r', survivors: 0 },
      exitedAt: 1735689601500,
      request: { key: 'k', bodyHash: 'h' },
      logRewinds: [{ epoch: 1, lastSeq: 3 }],
      startRequest: { key: 'k2', bodyHash: 'h2' },
    };
    const value = JSON.parse(recordToJson(full));
    expect(Object.keys(value)).toEqual(
      `id agent session owner cwd command state socket created_at uid instance pid started_by cols
       rows title labels backend name on_exit created_by exit_code signal reason survivors exited_at
       updated_at log_epoch request log_rewinds start_request`.split(/\s+/),
    );
    expect(Object.keys(value.started_by)).toEqual(['nonce', 'start_time', 'boot_id']);
    expect(value).toMatchObject({ exit_code: 143, exited_at: 1735689601.5, owner: '1000' });
    const { socket: _socket, ...bare } = record;
    expect(Object.keys(JSON.parse(recordToJson(bare)))).not.toContain('socket');
    expect(recordToJson(bare)).not.toContain('undefined');
  });

  it('gives back every record as it was', () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 });
    const part = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9_+-]{0,20}$/).map(name);
    const count = fc.nat();
    const uint32 = fc.nat(0xffff_ffff);
    const millis = fc.integer({ min: 0, max: 4_102_444_800_000 });
    const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
    const arbitrary = fc.record({
      owner: part,
      agent: part,
      session: part,
      id: part,
      cwd: text.map((path) => `/${path}`),
      command: fc.array(text, { minLength: 1, maxLength: 4 }),
      state: fc.constantFrom(...terminalStates),
      socket: optional(text),
      createdAt: fc.nat(253_402_300_799),
      uid: text,
      instance: uint32,
      pid: optional(fc.integer({ min: 1, max: 4_194_304 })),
      marks: optional(fc.record({ nonce: fc.uuid(), startTime: count, bootId: fc.uuid() })),
      size: fc.record({
        cols: fc.integer({ min: 1, max: 1000 }),
        rows: fc.integer({ min: 1, max: 1000 }),
      }),
      title: text,
      labels: fc.dictionary(
        text.filter((key) => key !== '__proto__'),
        text,
        { maxKeys: 4 },
      ),
      backend: text,
      name: text,
      onExit: fc.constantFrom('leave' as const, 'sweep' as const),
      createdBy: optional(
        fc.record({ issuer: text, subject: text, grants: fc.array(text, { maxLength: 3 }) }),
      ),
      exit: fc.record(
        { exitCode: fc.nat(255), signal: text, reason: text, survivors: uint32 },
        { requiredKeys: [] },
      ),
      exitedAt: optional(millis),
      updatedAt: millis,
      logEpoch: uint32,
      request: optional(fc.record({ key: text, bodyHash: text })),
      logRewinds: optional(fc.constant([])),
      startRequest: optional(fc.record({ key: text, bodyHash: text })),
    });
    fc.assert(
      fc.property(arbitrary, ({ exit, ...fields }) => {
        const ended = fields.state === 'exited' || fields.state === 'error';
        const members = Object.entries({ ...fields, ...(ended && { exit }) });
        const given = Object.fromEntries(members.filter(([, value]) => value !== undefined));
        expect(recordFromJson(recordToJson(given as unknown as TerminalRecord))).toEqual(given);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    ['an id that is a path', '"id": "../x"'],
    ['an owner in numbers', '"owner": 1000'],
    ['a relative cwd', '"cwd": "workspace"'],
    ['a command in one string', '"command": "/bin/sh"'],
    ['an empty command', '"command": []'],
    ['a state that does not exist', '"state": "paused"'],
    ['created_at with a fraction', '"created_at": 1.5'],
    ['a pid of 0', '"pid": 0'],
    ['labels that are no text', '"labels": {"a": 1}'],
    ['an instance beyond 32 bits', '"instance": 4294967296'],
    ['a pid beyond 32 bits', '"pid": 4294967296'],
    ['survivors beyond 32 bits', '"survivors": 4294967296'],
    ['an epoch beyond 32 bits', '"log_epoch": 4294967296'],
    ['an end after the year 9999', '"exited_at": 1e300'],
    ['a change after the year 9999', '"updated_at": 253402300800'],
    [
      'rewinds out of order',
      '"log_rewinds": [{"epoch": 2, "last_seq": 3}, {"epoch": 1, "last_seq": 4}]',
    ],
    [
      'rewinds that go back',
      '"log_rewinds": [{"epoch": 1, "last_seq": 4}, {"epoch": 2, "last_seq": 3}]',
    ],
    ['a rewind of the present epoch', '"log_rewinds": [{"epoch": 9, "last_seq": 3}]'],
    ['marks without the boot', '"started_by": {"nonce": "n", "start_time": 1}'],
  ])('is refused with %s', (_what, member) => {
    const key = member.slice(0, member.indexOf(':'));
    const value = JSON.parse(EXAMPLE);
    Object.assign(value, { log_epoch: 9 }, JSON.parse(`{${member}}`));
    expect(() => recordFromJson(JSON.stringify(value))).toThrow(JSON.parse(key));
  });

  it('is refused when a key is missing or stands twice', () => {
    for (const key of Object.keys(JSON.parse(EXAMPLE)).filter((key) => key !== 'socket')) {
      const value = JSON.parse(EXAMPLE);
      delete value[key];
      expect(() => recordFromJson(JSON.stringify(value))).toThrow(key);
    }
    expect(() => recordFromJson(EXAMPLE.replace('{', '{"state":"exited",'))).toThrow('same name');
  });
});

describe('a resource on disk', () => {
  it('is at the path of the specification, 0600 in 0700, text ending in a newline', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, tuple);
    expect(dir).toBe(
      `${state.path}/home/1000/agent/coder/session/default/terminal/terminal-coder-default`,
    );
    expect(tupleOfDir(dir)).toEqual(tuple);
    await writeEnvironment(dir, { LANG: 'C', 'odd=key': '\n' });
    await writeRecord(dir, record);
    {
      await using log = await EventLog.open(dir);
      await log.append([output(1)]);
    }
    expect(readdirSync(dir).sort()).toEqual(
      ['cwd', 'env.json', 'events.jsonl', 'meta.json', 'owner', 'state', 'status'].sort(),
    );
    const text = (file: string) => readFileSync(join(dir, file), 'utf8');
    expect([text('state'), text('status'), text('owner'), text('cwd')]).toEqual([
      'running\n',
      'running\n',
      '1000\n',
      '/workspace\n',
    ]);
    for (const file of readdirSync(dir)) {
      expect(text(file).endsWith('\n')).toBe(true);
      expect(lstatSync(join(dir, file)).mode & 0o7777).toBe(0o600);
    }
    for (let path = dir; path !== state.path; path = dirname(path)) {
      expect(lstatSync(path).mode & 0o7777).toBe(0o700);
    }
    expect(await readRecord(dir)).toEqual(record);
    expect(await readEnvironment(dir)).toEqual({ LANG: 'C', 'odd=key': '\n' });
  });

  it('has those projections written that say something else than before, and no others', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, record);
    await writeRecord(dir, record);
    writeFileSync(join(dir, 'owner'), 'as it was');
    writeFileSync(join(dir, 'state'), 'as it was');
    await writeRecord(dir, { ...record, state: 'exited' }, { projected: record });
    expect(readFileSync(join(dir, 'owner'), 'utf8')).toBe('as it was');
    expect(readFileSync(join(dir, 'state'), 'utf8')).toBe('exited\n');
    expect(readFileSync(join(dir, 'status'), 'utf8')).toBe('exited\n');
  });

  it('has its projections left alone by a record that passes', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, record);
    await writePassingRecord(dir, { ...record, state: 'created' });
    expect(readdirSync(dir)).toEqual(['meta.json']);
    await writeRecord(dir, record);
    await writePassingRecord(dir, { ...record, state: 'created' });
    expect(await readRecord(dir)).toMatchObject({ state: 'created' });
    expect(readFileSync(join(dir, 'state'), 'utf8')).toBe('running\n');
  });

  it('has its projections written anew, and temporary files removed, at recovery', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, tuple);
    await writeRecord(dir, record);
    await rm(join(dir, 'state'));
    writeFileSync(join(dir, 'status'), 'created\n');
    writeFileSync(join(dir, '.tmp-meta.json-0123'), '{');
    expect((await recoverResource(dir)).record).toEqual(record);
    expect(readFileSync(join(dir, 'state'), 'utf8')).toBe('running\n');
    expect(readFileSync(join(dir, 'status'), 'utf8')).toBe('running\n');
    expect(readdirSync(dir).filter((file) => file.startsWith('.'))).toEqual([]);
  });

  it('is not made over one that is there, sound or not, but over one that was left half made', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, tuple);
    await writeEnvironment(dir, { A: 'left over' });
    await (await EventLog.open(dir)).close();
    await makeResourceDir(state.path, tuple);
    expect(readdirSync(dir)).toEqual([]);
    writeFileSync(join(dir, 'meta.json'), 'unsound');
    await expect(makeResourceDir(state.path, tuple)).rejects.toMatchObject({
      reason: 'TERMINAL_EXISTS',
    });
    await rm(join(dir, 'meta.json'));
    writeFileSync(join(dir, 'events.jsonl'), 'history');
    await expect(makeResourceDir(state.path, tuple)).rejects.toMatchObject({
      reason: 'TERMINAL_EXISTS',
    });
    expect(readFileSync(join(dir, 'events.jsonl'), 'utf8')).toBe('history');
  });

  it.each(['home', 'home/1000', 'home/1000/agent/coder', 'home/1000/agent/coder/session'])(
    'is not made where %s is a link, or where others may write',
    async (part) => {
      await using outside = await temporaryDir();
      await using state = await temporaryDir();
      const path = join(state.path, part);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await symlink(outside.path, path);
      await expect(makeResourceDir(state.path, tuple)).rejects.toThrow('not a directory');
      await rm(path);
      await mkdir(path);
      await chmod(path, 0o777);
      await expect(makeResourceDir(state.path, tuple)).rejects.toThrow('writable by others');
      expect(readdirSync(outside.path)).toEqual([]);
    },
  );

  it('is not made twice by two at once', async () => {
    await using state = await temporaryDir();
    const make = async () => {
      const dir = await makeResourceDir(state.path, tuple);
      await writeRecord(dir, record, { sync: false });
    };
    await make();
    const results = await Promise.allSettled([make(), make()]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  it.each(['symbolic link', 'hard link', 'FIFO', 'directory'])(
    'is refused when its meta.json is a %s',
    async (kind) => {
      await using state = await temporaryDir();
      const dir = await makeResourceDir(state.path, tuple);
      const path = join(dir, 'meta.json');
      const outside = join(state.path, 'outside');
      writeFileSync(outside, recordToJson(record));
      if (kind === 'symbolic link') await symlink(outside, path);
      if (kind === 'hard link') await link(outside, path);
      if (kind === 'FIFO') execFileSync('mkfifo', [path]);
      if (kind === 'directory') await mkdir(path);
      await expect(readRecord(dir)).rejects.toThrow();
      if (kind === 'FIFO') execFileSync('mkfifo', [join(dir, 'env.json')]);
      else await symlink(outside, join(dir, 'env.json'));
      await expect(readEnvironment(dir)).rejects.toThrow();
    },
  );

  it("is refused when it holds another terminal's record, or its directory is a link", async () => {
    await using state = await temporaryDir();
    const other = { ...tuple, id: name('other') };
    const dir = await makeResourceDir(state.path, tuple);
    await writeRecord(dir, { ...record, ...other });
    await expect(readRecord(dir)).rejects.toThrow('another terminal');
    await writeRecord(dir, record);
    await symlink(dir, resourceDir(state.path, other));
    await expect(readRecord(resourceDir(state.path, other))).rejects.toThrow('not a directory');
    await expect(readRecord(join(state.path, 'no'))).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('has an empty environment when there is no env.json, and is refused with an unsound one', async () => {
    await using state = await temporaryDir();
    expect(await readEnvironment(state.path)).toEqual({});
    for (const json of ['[]', 'null', '{"A":1}', '"x"', '{']) {
      writeFileSync(join(state.path, 'env.json'), json);
      await expect(readEnvironment(state.path)).rejects.toThrow();
    }
  });

  it('is gone at once and whole when it is removed', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, tuple);
    await writeRecord(dir, record);
    await removeResource(dir);
    // The owner's directory may be the operator's.
    expect(readdirSync(join(state.path, 'home/1000/agent'))).toEqual([]);
    await expect(removeResource(dir)).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('leaves what is not empty above it, and an agent with other sessions', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, tuple);
    const sibling = await makeResourceDir(state.path, { ...tuple, id: name('second') });
    const other = await makeResourceDir(state.path, { ...tuple, session: name('other') });
    await removeResource(dir);
    expect(lstatSync(sibling).isDirectory()).toBe(true);
    await removeResource(sibling);
    expect(lstatSync(other).isDirectory()).toBe(true);
    expect(readdirSync(join(state.path, 'home/1000/agent/coder/session'))).toEqual(['other']);
  });

  it('never takes the ground from under one that is being made', async () => {
    await using state = await temporaryDir();
    await Promise.all(
      Array.from({ length: 8 }, async (_, worker) => {
        const mine = { ...tuple, id: name(`w${worker}`) };
        for (let round = 0; round < 50; round += 1) {
          const dir = await makeResourceDir(state.path, mine);
          await writeEnvironment(dir, {});
          await removeResource(dir);
        }
      }),
    );
    expect(readdirSync(join(state.path, 'home/1000/agent'))).toEqual([]);
  });
});

describe('scanning a state directory', () => {
  const scan = async (stateDir: string) => {
    const found: string[] = [];
    const warnings: object[] = [];
    const log = { warn: (fields: object) => warnings.push(fields) };
    for await (const { dir, tuple } of scanResources(stateDir, { log })) {
      expect(dir).toBe(resourceDir(stateDir, tuple));
      found.push(`${tuple.owner}/${tuple.agent}/${tuple.session}/${tuple.id}`);
    }
    return { found, warnings };
  };

  it('removes what a removal that was cut short has left, if it is told to', async () => {
    await using state = await temporaryDir();
    const dir = await makeResourceDir(state.path, tuple);
    const left = join(dirname(dir), '.removed-gone-0123');
    await mkdir(left);
    writeFileSync(join(left, 'events.jsonl'), 'history');
    const ids: string[] = [];
    for await (const { tuple: found } of scanResources(state.path, { clear: true })) {
      ids.push(found.id);
    }
    expect(ids).toEqual([tuple.id]);
    expect(readdirSync(dirname(dir))).toEqual([tuple.id]);
  });

  it('finds nothing where nothing is', async () => {
    await using state = await temporaryDir();
    expect(await scan(state.path)).toEqual({ found: [], warnings: [] });
  });

  it('finds every resource in a fixed order', async () => {
    await using state = await temporaryDir();
    const parts = ['b', 'a', 'B', '10', '9'].map(name);
    for (const owner of parts.slice(0, 2)) {
      for (const agent of parts) {
        await makeResourceDir(state.path, { owner, agent, session: name('s'), id: name('t') });
      }
    }
    expect(await scan(state.path)).toEqual({
      found: ['a', 'b'].flatMap((owner) =>
        ['10', '9', 'B', 'a', 'b'].map((agent) => `${owner}/${agent}/s/t`),
      ),
      warnings: [],
    });
  });

  it('passes over links, files and unsound names, says so, and touches nothing outside', async () => {
    await using outside = await temporaryDir();
    await using state = await temporaryDir();
    await makeResourceDir(outside.path, tuple);
    const dir = await makeResourceDir(state.path, tuple);
    const home = join(state.path, 'home');
    const terminals = dirname(dir);
    await symlink(join(outside.path, 'home', '1000'), join(home, '1001'));
    await symlink(dir, join(terminals, 'linked'));
    await rename(
      await makeResourceDir(state.path, { ...tuple, id: name('x') }),
      join(terminals, 'x.d'),
    );
    await mkdir(join(terminals, ' blank'));
    await mkdir(join(terminals, '%2e%2e'));
    await mkdir(join(terminals, 'y'.repeat(65)));
    execFileSync('mkfifo', [join(terminals, 'fifo')]);
    writeFileSync(join(terminals, 'file'), '');
    const { found, warnings } = await scan(state.path);
    expect(found).toEqual(['1000/coder/default/terminal-coder-default']);
    expect(warnings).toHaveLength(8);
  });
});

describe('the path of a resource', () => {
  it('leads back to its tuple, and nothing else does', () => {
    expect(tupleOfDir('/s/home/1/agent/a/session/s/terminal/t')).toEqual({
      owner: '1',
      agent: 'a',
      session: 's',
      id: 't',
    });
    for (const path of [
      '/s/home/1/agent/a/session/s/terminal',
      '/s/home/1/agent/a/session/s/terminal/..',
      '/s/home/1/agent/a/session/s/terminal/t/x',
      '/s/home/../agent/a/session/s/terminal/t',
      'terminal/t',
      '/',
    ]) {
      expect(tupleOfDir(path)).toBeUndefined();
    }
  });
});
