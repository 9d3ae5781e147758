/**
 * The budgets of the Node package, each row beside what else a user might pick.
 *
 * The rows and their budgets are described in `docs/benchmarks.md`. The exit status is 1 when a budget is missed, and 2 when
 * something could not be measured.
 */
import { writeFileSync } from 'node:fs'

import { judge, misses } from './budget.mjs'
import { findings } from './finding.mjs'
import { entrantsOf } from './host/entrants.mjs'
import { parse, USAGE } from './options.mjs'
import { objects, table } from './report.mjs'
import { ROWS } from './rows/index.mjs'
import { take } from './turns.mjs'

async function measure(row, options) {
  const prepared = row.prepare?.() ?? { parameters: {}, discard() {} }
  const entrants = entrantsOf(row, prepared.parameters, options.ownership)
  try {
    const taken = await take(entrants, row.effort, options.rounds)
    return judge(findings(row, taken))
  } finally {
    await Promise.all(entrants.map((entrant) => entrant.close()))
    prepared.discard()
  }
}

async function bench(options) {
  const found = []
  for (const row of ROWS.filter((row) => options.rows.includes(row.name))) {
    process.stderr.write(`measuring ${row.name} …\n`)
    found.push(...(await measure(row, options)))
    // After each row, so that what was measured is there even where a later row cannot be.
    if (options.json !== undefined) writeFileSync(options.json, objects(found))
  }
  process.stdout.write(table(found))
  const missed = misses(found)
  for (const miss of missed) process.stderr.write(`budget missed: ${miss}\n`)
  return missed.length === 0 ? 0 : 1
}

try {
  const options = parse(process.argv.slice(2))
  if (options === undefined) process.stdout.write(USAGE)
  else process.exitCode = await bench(options)
} catch (error) {
  process.stderr.write(`bench: ${error.message}\n`)
  process.exitCode = 2
}
