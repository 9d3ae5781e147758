/** What is printed. */

/** One JSON object a line. Fields that every object has are null where there is nothing to say. */
export function objects(findings) {
  return findings
    .map(({ row, impl, tier, numbers, withinBudget }) => {
      const object = { row, impl, tier, node: process.versions.node, median_us: null, p95_us: null, peer_ratio: null }
      // Three decimals are more than any of these measurements has.
      for (const [field, number] of Object.entries(numbers)) object[field] = Math.round(number * 1000) / 1000
      object.within_budget = withinBudget
      return `${JSON.stringify(object)}\n`
    })
    .join('')
}

/** Field, unit, decimals: what stands in the column "besides", in this order. */
const BESIDES = [
  ['loop_us', ' µs of the loop in all', 0],
  ['loop_ratio', ' × in all', 2],
  ['small_host_ratio', ' × in a small host', 2],
  ['small_host_loop_ratio', ' × in all in a small host', 2],
  ['memory_growth_kib', ' KiB more memory', 0],
  ['cpu_percent', ' % of a core', 3],
  ['wake_ups_per_s', ' wake-ups/s', 1],
  ['threads', ' threads', 0],
]

function line({ row, impl, tier, numbers, withinBudget }) {
  const number = (field, unit, decimals) =>
    numbers[field] === undefined ? undefined : `${numbers[field].toFixed(decimals)}${unit}`
  return [
    row,
    tier === null ? impl : `${impl} (${tier})`,
    number('median_us', ' µs', 0) ?? number('mib_s', ' MiB/s', 0) ?? number('per_s', ' /s', 0) ?? '',
    number('p95_us', ' µs', 0) ?? '',
    number('peer_ratio', '', 2) ?? '',
    BESIDES.map(([field, unit, decimals]) => number(field, unit, decimals))
      .filter((text) => text !== undefined)
      .join(', '),
    withinBudget === null ? '' : withinBudget ? 'kept' : 'MISSED',
  ]
}

const NUMBERS = new Set([2, 3, 4])

/** An aligned table. */
export function table(findings) {
  const lines = [['row', 'what', 'median', 'p95', '× peer', 'besides', 'budget'], ...findings.map(line)]
  const widths = lines[0].map((_, column) => Math.max(...lines.map((cells) => cells[column].length)))
  return lines
    .map((cells) =>
      cells
        .map((cell, column) => (NUMBERS.has(column) ? cell.padStart(widths[column]) : cell.padEnd(widths[column])))
        .join('  ')
        .trimEnd(),
    )
    .map((text) => `${text}\n`)
    .join('')
}
