/**
 * The protocol's own conformance suite for servers.
 *
 * Most of it is for servers made to be tested, with tools, prompts and resources of agreed names; those scenarios are named in
 * `conformance-baseline.yml`, each with the reason. One that is named there and passes is a failure as well.
 */
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { authorizing } from '../fixture/authorizing-proxy.js'
import { run } from '../fixture/command.js'
import { HttpServer } from '../fixture/server.js'

test('every scenario for what the server offers passes, and no other', async () => {
  // The suite calls from a page of the server's own host, as a browser would say, and takes that to be let in.
  const server = await HttpServer.start('--allow-origin', 'http://127.0.0.1:*')
  const baseline = fileURLToPath(new URL('../conformance-baseline.yml', import.meta.url))
  const suite = ['server', '--url', await authorizing(server), '--suite', 'all', '--expected-failures', baseline]
  const { status, stdout, stderr } = await run('@modelcontextprotocol/conformance/dist/index.js', suite, server.directory)
  // The suite's own summary is the last thing that it prints.
  console.log(stdout.slice(stdout.lastIndexOf('=== SUMMARY ===')))
  expect(status, `${stdout}\n${stderr}`).toBe(0)
})
