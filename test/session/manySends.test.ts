import { manySends } from '../support/manySends.js';
import { inProcess } from '../support/sessionDriver.js';

manySends('in process', inProcess);
