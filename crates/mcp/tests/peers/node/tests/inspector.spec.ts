/** The inspector's command line: one session per command. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { run, type Ended } from '../fixture/command.js'
import { untilGone } from '../fixture/processes.js'
import type { Facts } from '../fixture/results.js'
import { HttpServer, newMark, program, temporaryDirectory } from '../fixture/server.js'

const INSPECTOR = '@modelcontextprotocol/inspector/clients/launcher/build/index.js'

/** What asks the server for one thing, on this connection. */
type Ask = (...args: string[]) => Promise<Ended>

function overStdio(): Ask {
  const directory = temporaryDirectory()
  const mark = newMark()
  onTestFinished(() => untilGone(mark))
  return (...args) => run(INSPECTOR, ['--cli', ...OPTIONS, ...args, '-e', `PEER_SERVER=${mark}`, program(), '--', 'mcp'], directory)
}

async function overHttp(): Promise<Ask> {
  const server = await HttpServer.start()
  const target = ['--transport', 'http', '--server-url', server.url, '--header', `Authorization: Bearer ${server.token}`]
  return (...args) => run(INSPECTOR, ['--cli', ...OPTIONS, ...args, ...target], server.directory)
}

const OPTIONS = ['--format', 'json', '--stored-auth-only']

const result = (ended: Ended): Facts => {
  expect(ended.status, ended.stderr).toBe(0)
  return JSON.parse(ended.stdout).result
}

/** Both ways to begin: with the handshake of the older versions of the protocol, and without. */
const ERAS = ['legacy', 'auto']

describe.each([
  ['stdio', overStdio],
  ['streamable HTTP', overHttp],
])('over %s', (_name, open) => {
  test.each(ERAS)('it lists the tools and finds no fault with their schemas (%s)', async (era) => {
    const ask = await open()
    const { tools } = result(await ask('--protocol-era', era, '--strict', '--method', 'tools/list'))
    expect(tools.map((tool: Facts) => tool['name']).sort()).toEqual(['bash', 'job_kill', 'job_list', 'job_output', 'process_info'])
  })

  test.each(ERAS)('it calls a tool (%s)', async (era) => {
    const ask = await open()
    const args = JSON.stringify({ command: 'echo out; echo err >&2; exit 3' })
    const answer = result(await ask('--protocol-era', era, '--method', 'tools/call', '--tool-name', 'bash', '--tool-args-json', args))
    expect(answer['isError'] ?? false).toBe(false)
    expect(answer['structuredContent']).toMatchObject({ kind: 'foreground', exit_code: 3, stdout: { total_bytes: 4 } })
    expect(answer['content'][0].text).toMatch(/out[^]*\[stderr\][^]*err[^]*\[exit code: 3\]$/)
  })

  test.each(ERAS)('it lists the resources and their templates (%s)', async (era) => {
    const ask = await open()
    expect(result(await ask('--protocol-era', era, '--method', 'resources/list'))).toMatchObject({ resources: [] })
    const { resourceTemplates } = result(await ask('--protocol-era', era, '--method', 'resources/templates/list'))
    expect(resourceTemplates).toContainEqual(expect.objectContaining({ uriTemplate: expect.stringContaining('dsh-output:///') }))
  })
})
