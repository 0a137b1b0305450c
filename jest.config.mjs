// Tests run as native ES modules; swc only strips the types. Processes and workers run dist/, so build first.
export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', explicitResourceManagement: true },
        },
        module: { type: 'es6' },
      },
    ],
  },
  reporters: ['default', '<rootDir>/test/support/summaryReporter.mjs'],
  maxWorkers: 2,
  // A worker that has run a hundred files is as large as what some tests measure: then a new one goes on.
  workerIdleMemoryLimit: '600MB',
  testTimeout: 30_000,
};
