import { defineConfig } from 'vitest/config'

// What is tested is what is shipped: a spec imports the package by its own name,
//
//     import { LocalSubprocessRuntime } from 'dsh-subprocess'
//
// which resolves through the `exports` of package.json to the built `dist`, never to the sources in `ts`. So build first:
// `cargo xtask build node`. Programs that a spec starts with Node.js import it in the same way, as long as they lie below this
// directory.
export default defineConfig({
  test: {
    include: ['tests/**/*.spec.ts'],
    // A process per spec file: the addon, the descriptors and the environment of one are none of another's.
    pool: 'forks',
    execArgv: ['--expose-gc'],
    // A spec mostly waits for other processes.
    maxWorkers: 4,
    // One test alone is for a terminal, never for a suite that passes.
    allowOnly: false,
    // The built package is loaded by Node.js itself, as a user's is.
    server: { deps: { external: [/\/dist\/index\.mjs$/] } },
    // Only there so that a defect ends in a failure instead of a hang.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    // Who runs the tests may be unable to write here.
    cache: false,
  },
})
