import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['tests/**/*.spec.ts'],
    pool: 'forks',
    // A spec mostly waits for other processes.
    maxWorkers: 4,
    // One test alone is for a terminal, never for a suite that passes.
    allowOnly: false,
    // Only there so that a defect ends in a failure instead of a hang.
    testTimeout: 90_000,
    hookTimeout: 90_000,
    teardownTimeout: 20_000,
    // Who runs the tests may be unable to write here.
    cache: false,
  },
})
