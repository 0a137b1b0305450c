/** Entry of a screen worker: a thread that emulates terminals, so that no PTY waits for it. */
import { parentPort } from 'node:worker_threads';
import { PARK_AFTER_MS, ScreenHost } from './screenHost.js';

const port = parentPort;
if (!port) throw new Error('screenWorker.js runs as a worker thread');
const host = new ScreenHost((message) => port.postMessage(message));
port.on('message', (message) => host.receive(message));
setInterval(() => host.parkIdle(), PARK_AFTER_MS / 2).unref();
