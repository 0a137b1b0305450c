import { sessionContract } from '../support/sessionContract.js';
import { overGrpc } from '../support/sessionDriver.js';

sessionContract('over gRPC', overGrpc);
