/** Ends a run with one plain line that any tool can read; suites that did not run count as failed. */
export default class SummaryReporter {
  onRunComplete(_contexts, { numPassedTests, numFailedTests, numPendingTests, ...results }) {
    const failed = numFailedTests + results.numRuntimeErrorTestSuites;
    process.stderr.write(
      `\n${numPassedTests} passed, ${failed} failed, ${numPendingTests} skipped\n`,
    );
  }
}
