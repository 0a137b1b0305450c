// What terminals that outlive their server come to without anything else: two processes of Node.js, one
// with grpc-js and one with the terminals, and a Unix socket between them for each terminal. Nothing is
// decided, recorded, logged or acknowledged, and who comes late has missed what was before. Bytes are
// passed on by the program's own means, so that no step costs more than it does there: all terminals are
// read into one buffer, what arrives while a write is under way is the next one, a flood fills 64 KiB or
// waits 2 ms, and memory of large pieces is used again.
// Arguments: path of that socket, then a certificate and its key; without them it speaks plain TCP.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { fromBinary } from '@bufbuild/protobuf';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import {
  AttachRequestSchema,
  CreateTerminalRequestSchema,
  KillRequestSchema,
  WatchRequestSchema,
  WriteRequestSchema,
} from '../../dist/gen/public/grantty/v1/terminal_service_pb.js';
import { openPty } from '../../dist/pty/pty.js';
import { framedMessages } from '../../dist/server/framedMessage.js';
import { encodeEvent } from '../../dist/server/streamEvents.js';
import { PendingOutput } from '../../dist/supervisor/pendingOutput.js';

/** Of output in one message. */
const MESSAGE_BYTES = 64 * 1024;
/** A full read of the kernel's PTY: what is as large belongs to a flood … */
const FLOOD_BYTES = 4095;
/** … and so does what follows in so many milliseconds; it waits for more. */
const FLOOD_GAP_MS = 20;
const FLOOD_WAIT_MS = 2;
/** Output that may wait for the other process before the terminal is held back. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024;
/** Bytes of a message up to which its lengths are one byte each. */
const SHORT_BYTES = 127;

/** The process with the terminals: each connection is one, and says first what to run. */
function holdTerminals(path) {
  const env = { PATH: process.env.PATH ?? '', TERM: 'xterm-256color' };
  const size = { cols: 80, rows: 24 };
  const server = createServer((socket) => {
    let pty;
    socket.on('error', () => {});
    // The kernel hangs up on whoever has the terminal.
    socket.on('close', () => pty?.close());
    socket.on('data', (data) => {
      if (pty) return pty.send(data, () => undefined).catch(() => {});
      const output = new PassedOn(socket, (hold) =>
        hold ? pty.pauseOutput() : pty.resumeOutput(),
      );
      const command = JSON.parse(data.toString());
      pty = openPty({ command, env, cwd: '/', size }, (chunk) => output.add(chunk));
    });
  });
  server.listen(path, () => process.send('listening'));
  process.on('disconnect', () => process.exit());
}

/** Output on its way to the other process. */
class PassedOn {
  #pending = new PendingOutput();
  #isWriting = false;
  #isHeld = false;
  #lastBytes = 0;
  #lastAt = 0;
  #timer;
  #socket;
  #hold;

  constructor(socket, hold) {
    this.#socket = socket;
    this.#hold = hold;
  }

  add(chunk) {
    this.#pending.push(chunk);
    if (!this.#isHeld && this.#pending.bytes >= MOST_WAITING_BYTES) this.#setHeld(true);
    if (!this.#isWriting) this.#schedule();
  }

  #schedule() {
    const isFlood =
      this.#lastBytes >= FLOOD_BYTES && performance.now() - this.#lastAt < FLOOD_GAP_MS;
    if (!isFlood || this.#pending.bytes + FLOOD_BYTES > MESSAGE_BYTES) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), FLOOD_WAIT_MS);
  }

  #write() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isWriting = true;
    this.#lastBytes = this.#pending.bytes;
    const pieces = this.#pending.take();
    this.#socket.cork();
    for (const { data, loan } of pieces) {
      this.#socket.write(data, () => {
        loan?.release();
        if (data === pieces.at(-1).data) this.#written();
      });
    }
    this.#socket.uncork();
  }

  #written() {
    this.#isWriting = false;
    this.#lastAt = performance.now();
    if (this.#isHeld) this.#setHeld(false);
    if (!this.#pending.isEmpty) this.#schedule();
  }

  #setHeld(isHeld) {
    this.#isHeld = isHeld;
    this.#hold(isHeld);
  }
}

/** What the server knows of a terminal: its connection, and who takes its output. */
class Terminal {
  #socket;
  #call;
  /** Before anybody takes it. */
  #early = [];

  constructor(path, command) {
    const onread = {
      buffer: Buffer.allocUnsafeSlow(MESSAGE_BYTES),
      callback: (bytes, buffer) => this.#deliver(buffer.subarray(0, bytes)),
    };
    this.#socket = createConnection({ path, onread });
    this.#socket.on('error', () => {});
    this.#socket.write(JSON.stringify(command));
  }

  /** False where the terminal has to wait for who takes its output. */
  #deliver(data) {
    const output = encodeEvent({ type: 'pty.output', seq: 1, timeMicros: 0, data });
    if (this.#call === undefined) {
      this.#early.push(output);
      return true;
    }
    if (send(this.#call, output)) return true;
    this.#call.once('drain', () => this.#socket.resume());
    return false;
  }

  deliverTo(call) {
    this.#call = call;
    for (const output of this.#early) send(call, output);
  }

  type(bytes) {
    this.#socket.write(bytes);
  }

  end() {
    this.#socket.destroy();
  }
}

/** False where as much waits as should. */
function send(call, { message, loan }) {
  return call.write(message, (error) => {
    if (!error) loan?.release();
  });
}

/** What an AttachRequest brings as input, behind the keys and lengths of two fields. */
function inputOf(request) {
  if (request.length > SHORT_BYTES) throw new RangeError('only keys are typed here');
  return request.subarray(4);
}

/** The methods that the bench calls, with what they are to grpc-js. */
function terminalMethods(path) {
  const terminals = new Map();
  const find = ({ terminal }) => terminals.get(terminal.id);
  const unary = (schema, work) => ({
    handle(call, respond) {
      work(fromBinary(schema, call.request));
      respond(null, Buffer.alloc(0));
    },
  });
  return {
    CreateTerminal: unary(CreateTerminalRequestSchema, ({ id, command }) => {
      terminals.set(id, new Terminal(path, command));
    }),
    Write: unary(WriteRequestSchema, (request) => find(request).type(request.data)),
    Kill: unary(KillRequestSchema, (request) => find(request).end()),
    Watch: {
      responseStream: true,
      handle: (call) => find(fromBinary(WatchRequestSchema, call.request)).deliverTo(call),
    },
    Attach: {
      requestStream: true,
      responseStream: true,
      handle(call) {
        let terminal;
        call.on('end', () => call.end());
        call.on('data', (request) => {
          if (terminal) return terminal.type(inputOf(request));
          terminal = find(fromBinary(AttachRequestSchema, request).frame.value);
          terminal.deliverTo(call);
        });
      },
    },
  };
}

async function serve(path, credentials) {
  const holder = fork(fileURLToPath(import.meta.url), ['hold', path]);
  await once(holder, 'message');
  const server = new Server({ 'grpc.enable_channelz': 0, interceptors: [framedMessages] });
  const asBytes = (bytes) => bytes;
  for (const [name, method] of Object.entries(terminalMethods(path))) {
    const { handle, requestStream = false, responseStream = false } = method;
    const definition = {
      ...{ path: `/grantty.v1.TerminalService/${name}`, requestStream, responseStream },
      ...{ requestSerialize: asBytes, requestDeserialize: asBytes },
      ...{ responseSerialize: asBytes, responseDeserialize: asBytes },
    };
    server.addService({ [name]: definition }, { [name]: handle });
  }
  server.bindAsync('127.0.0.1:0', credentials, (error, port) => {
    if (error) throw error;
    console.log(`127.0.0.1:${port}`);
  });
}

const [first, second, third] = process.argv.slice(2);
if (first === 'hold') holdTerminals(second);
else if (second === undefined) await serve(first, ServerCredentials.createInsecure());
else {
  const pair = { cert_chain: readFileSync(second), private_key: readFileSync(third) };
  await serve(first, ServerCredentials.createSsl(null, [pair]));
}
