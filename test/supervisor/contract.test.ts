import { startRegistry } from '../support/registry.js';
import { startSocketRegistry } from '../support/socketRegistry.js';
import { supervisorContract } from '../support/supervisorContract.js';

supervisorContract('in process', startRegistry);
supervisorContract('over its socket', startSocketRegistry);
