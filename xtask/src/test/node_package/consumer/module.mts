import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import LocalSubprocessRuntime, * as names from 'dsh-subprocess'
import type { SubprocessHandle, SubprocessSpawnSpec } from 'dsh-subprocess'

// One state for both kinds of modules.
const required = createRequire(import.meta.url)('dsh-subprocess') as Record<string, unknown>
assert.deepEqual(Object.keys(names).sort(), Object.keys(required).sort())
for (const [name, value] of Object.entries(names)) {
  assert.equal(value, required[name], name)
}
assert.equal(LocalSubprocessRuntime, names.LocalSubprocessRuntime)

const spec: SubprocessSpawnSpec = {
  argv: ['echo', 'imported'],
  cwd: '/',
  stdio: { stdin: 'ignore', stdout: { maxBytes: 1024 }, stderr: 'inherit' },
  graceMs: 1000,
}
const runtime = new LocalSubprocessRuntime()
const handle: SubprocessHandle = runtime.spawn(spec)
assert.deepEqual(await handle.done, { exitCode: 0, signal: null })
assert.equal(handle.collected.stdout?.readFrom(0).text, 'imported\n')
await runtime.dispose()
