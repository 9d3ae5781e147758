/** The official TypeScript client, over each transport. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ResourceListChangedNotificationSchema, type Progress } from '@modelcontextprotocol/sdk/types.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { marked, untilGone, untilPresent } from '../fixture/processes.js'
import { answered, call, refused, text, type Facts } from '../fixture/results.js'
import { marking, newMark, overHttp, overStdio, SECRETS, type Connection } from '../fixture/server.js'

/** Longer than any test may take, in seconds. */
const FOREVER = 300

const TRANSPORTS: [string, () => Connection | Promise<Connection>][] = [
  ['stdio', overStdio],
  ['streamable HTTP', overHttp],
]

describe.each(TRANSPORTS)('over %s', (_name, open) => {
  test('the server tells its name, its version and how it is used', async () => {
    const { client } = await (await open()).connect()
    expect(client.getServerVersion()).toMatchObject({ name: 'dsh-subprocess', version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
    expect(client.getInstructions()).toContain('job_output')
    expect(client.getServerCapabilities()).toMatchObject({ logging: {}, resources: {}, tools: {} })
  })

  test('every tool has schemas that compile, and says what it may do', async () => {
    const { client } = await (await open()).connect()
    const { tools } = await client.listTools()
    expect(tools.map((tool) => tool.name).sort()).toEqual(['bash', 'job_kill', 'job_list', 'job_output', 'process_info'])
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    for (const tool of tools) {
      ajv.compile(tool.inputSchema)
      if (tool.outputSchema === undefined) throw new Error(`${tool.name} has no output schema`)
      ajv.compile(tool.outputSchema)
      const readsOnly = !['bash', 'job_kill'].includes(tool.name)
      expect(tool.annotations?.readOnlyHint ?? false, tool.name).toBe(readsOnly)
    }
  })

  test('the answer of each tool fits its schema', async () => {
    const { client } = await (await open()).connect()
    // From here on the client itself compares every answer.
    await client.listTools()
    const { job_id: job } = await answered(client, 'bash', { command: `sleep ${FOREVER}`, run_in_background: true })
    expect(await answered(client, 'bash', { command: 'exit 3' })).toMatchObject({ kind: 'foreground', exit_code: 3, signal: null })
    expect(await answered(client, 'job_list')).toMatchObject({ jobs: [{ id: job, status: 'running' }] })
    expect(await answered(client, 'job_output', { job_id: job })).toMatchObject({ job: { id: job, status: 'running' } })
    expect(await answered(client, 'process_info', { job_id: job })).toMatchObject({ job: { id: job } })
    expect(await answered(client, 'process_info')).toMatchObject({ live_jobs: 1 })
    expect(await answered(client, 'job_kill', { job_id: job })).toMatchObject({ result: 'stopped' })
  })

  test('an exit code and a signal are results, a directory that is missing is an error', async () => {
    const { client } = await (await open()).connect()
    const failed = await call(client, 'bash', { command: 'echo partly; exit 7' })
    expect(failed.isError ?? false).toBe(false)
    expect(text(failed)).toMatch(/partly[^]*\[exit code: 7\]$/)
    expect(await answered(client, 'bash', { command: 'kill -KILL $$' })).toMatchObject({ exit_code: null, signal: 'SIGKILL' })
    expect(await refused(client, 'bash', { command: 'echo hi', workdir: 'no-such-directory' })).toContain('no-such-directory')
    expect(await refused(client, 'bash', { command: ':', time_out: 5 })).toContain('time_out')
  })

  test('a timeout keeps what was printed and ends the tree', async () => {
    const { client } = await (await open()).connect()
    const mark = newMark()
    const command = marking(mark, `echo CRITICAL; echo warn >&2; sleep ${FOREVER} | cat`)
    const result = await call(client, 'bash', { command, timeout_ms: 1_000 })
    expect(result.isError ?? false).toBe(false)
    expect(result.structuredContent).toMatchObject({ cause: 'timed_out', timeout_ms: 1_000 })
    for (const expected of ['CRITICAL', 'warn', '[timed out after 1000ms]']) expect(text(result)).toContain(expected)
    expect(marked(mark)).toEqual([])
  })

  test('what a command leaves behind does not hold it up and is named', async () => {
    const { client } = await (await open()).connect()
    const mark = newMark()
    const command = marking(mark, `(while :; do echo tick; sleep 0.05; done) & echo done`)
    const result = await call(client, 'bash', { command })
    const { cause, exit_code, left_behind: left } = result.structuredContent as Facts
    expect({ cause, exit_code }).toEqual({ cause: 'ended', exit_code: 0 })
    expect(left['members'].length).toBeGreaterThan(0)
    for (const { pid } of left['members']) expect(text(result)).toContain(String(pid))
  })

  test('pages of a resource are the whole output', async () => {
    const { client } = await (await open()).connect()
    const result = await call(client, 'bash', { command: 'seq 300000' })
    const { stdout } = result.structuredContent as Facts
    const printed = Array.from({ length: 300_000 }, (_, index) => `${index + 1}\n`).join('')
    expect(stdout).toMatchObject({ total_bytes: printed.length })
    expect(result.content).toContainEqual(expect.objectContaining({ type: 'resource_link', uri: stdout.uri }))
    expect((await client.listResources()).resources).toContainEqual(expect.objectContaining({ uri: stdout.uri, size: printed.length }))
    let whole = ''
    for (let offset = 0, complete = false; !complete; ) {
      const [page] = (await client.readResource({ uri: `${stdout.uri}?offset=${offset}&length=262144` })).contents
      if (page === undefined || !('text' in page)) throw new Error('the page of a text is a text')
      whole += page.text
      const meta = page._meta as Facts
      expect(meta['next_offset']).toBeGreaterThan(offset)
      offset = meta['next_offset']
      complete = offset === meta['total_bytes']
    }
    expect(whole === printed).toBe(true)
  })

  test('progress of a long command is told while it runs', async () => {
    const { connect, directory } = await open()
    const { client } = await connect()
    const goOn = join(directory, 'go-on')
    const told: Progress[] = []
    const onprogress = (progress: Progress): void => {
      told.push(progress)
      // Until then the command does not end.
      if (progress.message?.includes('halfway') === true) writeFileSync(goOn, '')
    }
    const command = `echo halfway; until [ -e ${goOn} ]; do sleep 0.05; done`
    const result = await call(client, 'bash', { command }, { onprogress })
    expect(result.structuredContent).toMatchObject({ cause: 'ended', exit_code: 0 })
    const amounts = told.map(({ progress }) => progress)
    expect(amounts).toEqual([...new Set(amounts)].sort((a, b) => a - b))
  })

  test('a call that is cancelled leaves nobody, and the session goes on', async () => {
    const { client } = await (await open()).connect()
    const mark = newMark()
    const abort = new AbortController()
    const cancelled = call(client, 'bash', { command: marking(mark, `sleep ${FOREVER} | cat`) }, { signal: abort.signal })
    const end = expect(cancelled).rejects.toThrow()
    await untilPresent(mark, 3)
    abort.abort()
    await end
    await untilGone(mark)
    expect(await answered(client, 'bash', { command: 'echo and on' })).toMatchObject({ stdout: { text: expect.stringContaining('and on') } })
  })

  test('a job is read to its last line', async () => {
    const { client } = await (await open()).connect()
    const { job_id } = await answered(client, 'bash', { command: 'sleep 0.3; seq 2000; echo LAST', run_in_background: true })
    let seen = ''
    for (;;) {
      const { job, stdout } = await answered(client, 'job_output', { job_id, wait_ms: 10_000 })
      seen += stdout.text
      expect(stdout.lost_bytes).toBe(0)
      if (job.status === 'completed' && stdout.next_offset === stdout.total_bytes) break
    }
    expect(seen).toBe(Array.from({ length: 2_000 }, (_, index) => `${index + 1}\n`).join('') + 'LAST\n')
  })

  test('clients at once see nothing of each other, and the end of one is the end of its jobs alone', async () => {
    const { connect } = await open()
    const [one, other] = await Promise.all([connect(), connect()])
    const marks = [newMark(), newMark()]
    const jobs = await Promise.all(
      [one, other].map(({ client }, index) =>
        answered(client, 'bash', { command: marking(marks[index] ?? '', `sleep ${FOREVER}`), run_in_background: true }),
      ),
    )
    await Promise.all(marks.map((mark) => untilPresent(mark)))
    expect((await answered(one.client, 'job_list'))['jobs']).toHaveLength(1)
    // Both may have the same id, each its own: the second job of one is known to one alone.
    const { job_id: second } = await answered(one.client, 'bash', { command: `sleep ${FOREVER}`, run_in_background: true })
    expect(jobs.map(({ job_id }) => job_id)).not.toContain(second)
    for (const tool of ['job_output', 'job_kill', 'process_info']) {
      const foreign = await refused(other.client, tool, { job_id: second })
      const unknown = await refused(other.client, tool, { job_id: 'bash-98765' })
      expect(foreign.replaceAll(second, 'ID')).toBe(unknown.replaceAll('bash-98765', 'ID'))
    }
    await one.end()
    await untilGone(marks[0] ?? '')
    expect(marked(marks[1] ?? '')).not.toEqual([])
    expect((await answered(other.client, 'job_list'))['jobs']).toHaveLength(1)
  })

  test('the resources that appear are told', async () => {
    const { client } = await (await open()).connect()
    const told = new Promise((resolve) => {
      client.setNotificationHandler(ResourceListChangedNotificationSchema, resolve)
    })
    await answered(client, 'bash', { command: 'seq 100000' })
    await told
    expect((await client.listResources()).resources).not.toEqual([])
  })

  test('nothing secret of the host is in a command', async () => {
    const { client } = await (await open()).connect()
    const { stdout } = await answered(client, 'bash', { command: `env; tr '\\0' '\\n' </proc/$$/environ` })
    expect(stdout.text).toContain('PATH=')
    for (const [name, value] of Object.entries(SECRETS)) {
      expect(stdout.text).not.toContain(name)
      expect(stdout.text).not.toContain(value)
    }
  })

  test('commands are not read from the input of the server, nor written to its output', async () => {
    const { client } = await (await open()).connect()
    const results = await Promise.all(
      Array.from({ length: 16 }, (_, index) => answered(client, 'bash', { command: `cat; echo ${index} | tee /dev/stderr` })),
    )
    expect(results.map(({ stdout, stderr }) => [stdout.text.trim(), stderr.text.trim()])).toEqual(
      results.map((_, index) => [String(index), String(index)]),
    )
  })
})
