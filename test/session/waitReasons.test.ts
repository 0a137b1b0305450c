import { inProcess } from '../support/sessionDriver.js';
import { waitReasonMatrix } from '../support/waitReasonMatrix.js';

waitReasonMatrix('in process', inProcess);
