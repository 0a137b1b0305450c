import { floodSend } from '../support/floodSend.js';
import { overGrpc } from '../support/sessionDriver.js';

floodSend('over gRPC', overGrpc);
