import { closeCases } from '../support/closeCases.js';
import { overGrpc } from '../support/sessionDriver.js';

closeCases('over gRPC', overGrpc);
