/** The thread in which one candidate set is parsed and validated; it ends with its answer. */
import { parentPort, workerData } from 'node:worker_threads';
import * as cedar from '@cedar-policy/cedar-wasm/nodejs';
import { checkSources } from './cedarCheck.js';

parentPort?.postMessage(checkSources(cedar, workerData));
