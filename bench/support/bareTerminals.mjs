// What terminals that outlive their server come to without anything else: two processes of Node.js, one
// with grpc-js and one with the terminals, and a Unix socket between them for each terminal. Nothing is
// decided, recorded, logged or acknowledged, and who comes late has missed what was before. Bytes are
// passed on in the cheapest way known for each step: all terminals are read into one buffer, one write is
// under way at most and what arrives meanwhile is the next one, and a message is copied once.
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
import { FramedMessage, framedMessages, PREFIX_BYTES } from '../../dist/server/framedMessage.js';

/** Of output in one message. */
const BLOCK_BYTES = 64 * 1024;
/** Output that may wait for the other process before the terminal is held back. */
const MOST_WAITING_BYTES = 4 * 1024 * 1024;
/** Fewer bytes than any key has: such a message has its lengths in one byte each. */
const SHORT_BYTES = 100;

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
  #block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
  #used = 0;
  #full = [];
  #isWriting = false;
  #socket;
  #hold;

  constructor(socket, hold) {
    this.#socket = socket;
    this.#hold = hold;
  }

  add(chunk) {
    if (this.#used + chunk.length > BLOCK_BYTES) {
      this.#take();
      if (this.#full.length * BLOCK_BYTES >= MOST_WAITING_BYTES) this.#hold(true);
    }
    this.#block.set(chunk, this.#used);
    this.#used += chunk.length;
    if (!this.#isWriting) this.#write();
  }

  #take() {
    this.#full.push(this.#block.subarray(0, this.#used));
    this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#used = 0;
  }

  #write() {
    this.#take();
    const blocks = this.#full;
    this.#full = [];
    this.#isWriting = true;
    this.#socket.cork();
    for (const block of blocks) this.#socket.write(block);
    this.#socket.write('', () => {
      this.#isWriting = false;
      this.#hold(false);
      if (this.#used > 0 || this.#full.length > 0) this.#write();
    });
    this.#socket.uncork();
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
      buffer: Buffer.allocUnsafeSlow(BLOCK_BYTES),
      callback: (bytes, buffer) => this.#deliver(outputMessage(buffer.subarray(0, bytes))),
    };
    this.#socket = createConnection({ path, onread });
    this.#socket.on('error', () => {});
    this.#socket.write(JSON.stringify(command));
  }

  /** False where the terminal has to wait for who takes its output. */
  #deliver(message) {
    if (this.#call === undefined) this.#early.push(message);
    else if (!this.#call.write(message)) {
      this.#call.once('drain', () => this.#socket.resume());
      return false;
    }
    return true;
  }

  deliverTo(call) {
    this.#call = call;
    for (const message of this.#early) call.write(message);
  }

  type(bytes) {
    this.#socket.write(bytes);
  }

  end() {
    this.#socket.destroy();
  }
}

/** An event of Watch or Attach: two fields around the bytes. */
function outputMessage(data) {
  const length = varint(data.length);
  const head = [0x12, ...varint(1 + length.length + data.length), 0x1a, ...length];
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + head.length + data.length);
  frame.set(head, PREFIX_BYTES);
  frame.set(data, PREFIX_BYTES + head.length);
  return new FramedMessage(frame);
}

function varint(value) {
  const bytes = [];
  for (let rest = value; ; rest >>>= 7) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest & 127) | 128);
  }
}

/** What an AttachRequest brings as input, which is short. */
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
