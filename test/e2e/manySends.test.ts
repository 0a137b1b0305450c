import { manySends } from '../support/manySends.js';
import { overGrpc } from '../support/sessionDriver.js';

manySends('over gRPC', overGrpc);
