/** The command line. */
import { parseArgs } from 'node:util'

import { ROWS } from './rows/index.mjs'

const MECHANISMS = ['auto', 'cgroup', 'reaper', 'process_group']

export const USAGE = `Measures the budgets of the Node package; exits 1 when one is missed

usage: node --expose-gc bench/main.mjs [--rows ROW,…] [--rounds N] [--ownership MECHANISM,…] [--json FILE]

  --rows ROW,…             the rows to measure; all of them where it is left out
  --rounds N               measure every row this many times, however long it takes
  --ownership MECHANISM,…  what owns this package's trees: ${MECHANISMS.join(', ')}; auto where it is left out
  --json FILE              write one JSON object a line to this file, besides the table

rows: ${ROWS.map((row) => row.name).join(', ')}
`

function chosen(list, known, what) {
  const words = list.split(',').filter((word) => word !== '')
  const unknown = words.find((word) => !known.includes(word))
  if (unknown !== undefined) throw new Error(`no ${what} is called '${unknown}': there are ${known.join(', ')}`)
  return words
}

/**
 * Reads the arguments.
 *
 * @param {string[]} args
 * @returns {{ rows: string[], ownership: string[], rounds?: number, json?: string } | undefined} nothing for `--help`
 */
export function parse(args) {
  const { values } = parseArgs({
    args,
    options: {
      rows: { type: 'string' },
      rounds: { type: 'string' },
      ownership: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return undefined
  const names = ROWS.map((row) => row.name)
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds)
  if (rounds !== undefined && !(Number.isSafeInteger(rounds) && rounds > 0)) {
    throw new Error(`--rounds takes a whole number above 0, not '${values.rounds}'`)
  }
  return {
    rows: values.rows === undefined ? names : chosen(values.rows, names, 'row'),
    ownership: values.ownership === undefined ? ['auto'] : chosen(values.ownership, MECHANISMS, 'mechanism'),
    rounds,
    json: values.json,
  }
}
