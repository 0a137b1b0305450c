/** Where screens are emulated in tests. */

/** Built by `make build`: a worker cannot run what the test runner compiles. */
export const workerEntry = new URL('../../dist/session/screenWorker.js', import.meta.url);
