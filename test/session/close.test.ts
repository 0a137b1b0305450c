import { closeCases } from '../support/closeCases.js';
import { inProcess } from '../support/sessionDriver.js';

closeCases('in process', inProcess);
