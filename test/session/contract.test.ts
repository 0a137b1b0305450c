import { sessionContract } from '../support/sessionContract.js';
import { inProcess } from '../support/sessionDriver.js';

sessionContract('in process', inProcess);
