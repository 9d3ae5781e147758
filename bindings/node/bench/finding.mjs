/** What was found of one contender in one row. */
import { median, p95, pairedRatio } from './statistics.mjs'

/**
 * @typedef {object} Finding
 * @property {string} row
 * @property {string} impl `dsh-subprocess`, or a peer's name
 * @property {string | null} tier the mechanism that owned the trees, of this project
 * @property {Record<string, number>} numbers by the names of their fields in JSON
 * @property {boolean | null} withinBudget
 */

/** Whether a field says how much was done in a time, so that more is better. */
const THROUGHPUT = new Set(['per_s', 'mib_s'])

function numbersOf(row, samples, base, small) {
  const numbers = {}
  const fields = Object.keys(samples[0])
  const column = (of, field) => of.map((sample) => sample[field])
  for (const field of fields) {
    const own = column(samples, field)
    numbers[field === row.field && !THROUGHPUT.has(field) ? 'median_us' : field] = median(own)
  }
  if (row.field === undefined) return numbers
  if (!THROUGHPUT.has(row.field)) numbers.p95_us = p95(column(samples, row.field))
  for (const [field, ratio] of [[row.field, 'peer_ratio'], ...Object.entries(row.ratios ?? {})]) {
    if (base !== undefined) numbers[ratio] = pairedRatio(column(samples, field), column(base, field))
    if (small === undefined) continue
    const beside = ratio === 'peer_ratio' ? 'small_host_ratio' : `small_host_${ratio}`
    numbers[beside] = pairedRatio(column(samples, field), column(small, field))
  }
  return numbers
}

/**
 * Puts the samples of a row into findings: medians, and ratios to the row's first peer and, where the row has hosts of two sizes,
 * to the same contender in the small one. What is found of the small hosts is only told as that ratio.
 *
 * @returns {Finding[]}
 */
export function findings(row, taken) {
  const large = Math.max(...row.memories)
  const samplesOf = (contender, ownership, memory) =>
    taken.find(
      ({ entrant }) => entrant.contender === contender && entrant.ownership === ownership && entrant.memory === memory,
    )?.samples
  const peer = row.contenders.find((contender) => contender !== 'dsh-subprocess')
  const base = samplesOf(peer, undefined, large)
  return taken
    .filter(({ entrant }) => entrant.memory === large)
    .map(({ entrant, samples }) => ({
      row: row.name,
      impl: entrant.contender,
      tier: entrant.tier,
      numbers: numbersOf(row, samples, base, large > 0 ? samplesOf(entrant.contender, entrant.ownership, 0) : undefined),
      withinBudget: null,
    }))
}
