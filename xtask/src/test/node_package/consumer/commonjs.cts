import assert = require('node:assert/strict')
import dsh = require('dsh-subprocess')

async function main(): Promise<void> {
  assert.equal(dsh.default, dsh.LocalSubprocessRuntime)
  const runtime = new dsh.LocalSubprocessRuntime()
  const handle: dsh.LocalSubprocessHandle = runtime.spawn({
    argv: ['echo', 'required'],
    cwd: '/',
    stdio: { stdin: 'ignore', stdout: { maxBytes: 1024 }, stderr: 'inherit' },
    graceMs: 1000,
  })
  const outcome: dsh.SubprocessOutcome = await handle.done
  assert.deepEqual(outcome, { exitCode: 0, signal: null })
  assert.equal(handle.collected.stdout?.readFrom(0).text, 'required\n')
  await runtime.dispose()
}

void main()
