import { floodSend } from '../support/floodSend.js';
import { inProcess } from '../support/sessionDriver.js';

floodSend('in process', inProcess);
