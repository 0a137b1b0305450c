import { overGrpc } from '../support/sessionDriver.js';
import { waitReasonMatrix } from '../support/waitReasonMatrix.js';

waitReasonMatrix('over gRPC', overGrpc);
