/** Peers that break or bend HTTP/2, against a server in a process of its own: it answers others meanwhile. */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import type { Client } from '../../src/client/connect.js';
import {
  ACK,
  CONTINUATION,
  DATA,
  END_HEADERS,
  END_STREAM,
  frame,
  HEADERS,
  headerBlock,
  message,
  PING,
  PRIORITY,
  RawHttp2,
  RST_STREAM,
  SETTINGS,
  uint32,
  WINDOW_UPDATE,
} from '../server/rawHttp2.js';
import { type DevServer, startDevServer } from '../support/devServer.js';

const GET = '/grantty.v1.TerminalService/GetTerminal';
/** Frames of a flood, and how many go out between two looks at what came back. */
const FLOOD = 50_000;
const BURST = 500;
/** MiB that the server may hold more of after any of this; a flood that piled up would be hundreds. */
const ALLOWED_GROWTH_MIB = 96;
/** Milliseconds within which the bystander is answered, on a machine that does much else. */
const ANSWER_MS = 15_000;

const terminal = { id: 't1' };
/** Streams of a client have odd numbers. */
const odd = (n: number) => 2 * n + 1;

describe('a server among hostile peers', () => {
  let stateDir: string;
  let server: DevServer;
  let client: Client;
  beforeAll(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'grantty-hostile-'));
    server = await startDevServer(stateDir, ['--supervisor', 'in-process']);
    client = await server.client();
    await client.terminals.createTerminal({ agent: 'a', ...terminal, command: ['cat'] });
  }, 90_000);
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(stateDir, { recursive: true, force: true });
  });

  async function peer(): Promise<RawHttp2> {
    const [host, port] = (server.settings.GRANTTY_ADDRESS ?? '').split(':');
    const ca = await readFile(server.settings.GRANTTY_CA ?? '');
    const socket = connectTls({ host, port: Number(port), ca, ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    return RawHttp2.open(socket);
  }

  async function memoryMib(): Promise<number> {
    const status = await readFile(`/proc/${server.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
  }

  /** What the peer got for it; all the while another client is answered, and memory stays. */
  async function outcomeOf<T>(attack: (raw: RawHttp2) => Promise<T>): Promise<T> {
    const before = await memoryMib();
    await using raw = await peer();
    let isOver = false;
    const bystander = (async () => {
      do {
        await client.terminals.getTerminal({ terminal }, { timeoutMs: ANSWER_MS });
      } while (!isOver);
    })();
    try {
      const outcome = await Promise.race([
        attack(raw),
        bystander.then(() => raw.until(() => false)),
      ]);
      expect((await memoryMib()) - before).toBeLessThan(ALLOWED_GROWTH_MIB);
      return outcome as T;
    } finally {
      isOver = true;
      await bystander;
    }
  }

  /** Sends the `n`th frames over and over, until the server gives the connection up or it is enough. */
  async function flood(raw: RawHttp2, frames: (n: number) => readonly Buffer[]): Promise<void> {
    for (let n = 0; n < FLOOD && !raw.over; n += BURST) {
      raw.send(...Array.from({ length: BURST }, (_, index) => frames(n + index)).flat());
      await raw.drained();
    }
  }

  /** The server takes what is behind all of it, or has given the connection up. */
  async function survived(raw: RawHttp2): Promise<void> {
    const mark = Buffer.from('the mark');
    raw.send(frame(PING, 0, 0, mark));
    await raw.until(
      ({ type, flags, payload }) =>
        raw.over || (type === PING && flags === ACK && payload.equals(mark)),
    );
  }

  it('gives up a connection that opens and resets streams without end (CVE-2023-44487)', async () => {
    const outcome = await outcomeOf(async (raw) => {
      await flood(raw, (n) => [
        frame(HEADERS, END_HEADERS | END_STREAM, odd(n), headerBlock(GET)),
        frame(RST_STREAM, 0, odd(n), uint32(8)),
      ]);
      return raw.end();
    });
    expect(['INTERNAL_ERROR', 'ENHANCE_YOUR_CALM', 'closed']).toContain(outcome);
  }, 60_000);

  it('gives up a connection whose header block never ends', async () => {
    const outcome = await outcomeOf(async (raw) => {
      raw.send(frame(HEADERS, 0, 1, headerBlock(GET)));
      await flood(raw, () => [frame(CONTINUATION, 0, 1, Buffer.from([0, 1, 97, 1, 98]))]);
      return raw.end();
    });
    expect(['INTERNAL_ERROR', 'ENHANCE_YOUR_CALM', 'closed']).toContain(outcome);
  }, 60_000);

  it('gives up a connection that sends empty frames of data without end', async () => {
    const outcome = await outcomeOf(async (raw) => {
      raw.send(frame(HEADERS, END_HEADERS, 1, headerBlock(GET)));
      await flood(raw, () => [frame(DATA, 0, 1)]);
      return raw.end();
    });
    expect(['INTERNAL_ERROR', 'ENHANCE_YOUR_CALM', 'closed']).toContain(outcome);
  }, 60_000);

  it('answers pings and settings while the answers are read, and keeps none for who does not', async () => {
    const setting = Buffer.concat([Buffer.from([0, 4]), uint32(65_535)]);
    for (const one of [frame(PING, 0, 0, Buffer.alloc(8)), frame(SETTINGS, 0, 0, setting)]) {
      await outcomeOf(async (raw) => {
        await flood(raw, () => [one]);
        await survived(raw);
      });
      await outcomeOf(async (raw) => {
        raw.socket.pause();
        await Promise.race([flood(raw, () => [one]), raw.until(() => raw.closed)]);
        raw.socket.resume();
        await survived(raw);
      });
    }
  }, 120_000);

  it('bears priorities and windows of a byte', async () => {
    for (const frames of [
      (n: number) => [frame(PRIORITY, 0, odd(n % 1000), Buffer.from([0, 0, 0, 0, 1]))],
      () => [frame(WINDOW_UPDATE, 0, 0, uint32(1))],
    ]) {
      await outcomeOf(async (raw) => {
        await flood(raw, frames);
        await survived(raw);
      });
    }
  }, 60_000);

  it('ends a connection whose headers cannot be unpacked', async () => {
    const outcome = await outcomeOf(async (raw) => {
      raw.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.alloc(4, 0xff)));
      return raw.end();
    });
    expect(outcome).toBe('COMPRESSION_ERROR');
  });

  it('resets a stream whose few bytes of headers stand for megabytes', async () => {
    // An entry of 4,000 bytes for the table (RFC 7541, 6.2.1), then named 8,000 times by one byte.
    const bomb = Buffer.concat([
      headerBlock(GET),
      Buffer.from([0x40, 1, 97, 0x7f, 0xa1, 0x1e]),
      Buffer.alloc(4000, 98),
      Buffer.alloc(8000, 0x80 | 62),
    ]);
    const outcome = await outcomeOf(async (raw) => {
      raw.send(frame(HEADERS, END_HEADERS | END_STREAM, 1, bomb));
      return raw.reset(1);
    });
    expect(outcome).toBe('ENHANCE_YOUR_CALM');
  });

  it('refuses the stream above its number, and takes up no more of what is unfinished', async () => {
    // The message that each of them begins is said to be of 256 KiB.
    const begun = message(Buffer.alloc(16_000), 0, 256 * 1024);
    const outcome = await outcomeOf(async (raw) => {
      for (let n = 0; n <= 1024; n += 1) {
        raw.send(frame(HEADERS, END_HEADERS, odd(n), headerBlock(GET)));
        if (n < 1024) raw.send(frame(DATA, 0, odd(n), begun));
        if (n % 50 === 0) await raw.drained();
      }
      return raw.reset(odd(1024));
    });
    expect(outcome).toBe('REFUSED_STREAM');
  }, 60_000);
});
