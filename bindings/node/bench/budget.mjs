/** The budgets, as data. */

const atMost = (limit) => ({ limit, keeps: (number) => number <= limit, words: `at most ${limit}` })
const atLeast = (limit) => ({ limit, keeps: (number) => number >= limit, words: `at least ${limit}` })

/** Row, field, limit. They are this project's; peers have none. */
const BUDGETS = [
  ['spawn-block', 'peer_ratio', atMost(0.25)],
  ['spawn-block', 'loop_ratio', atMost(0.25)],
  ['spawn-block-2g', 'small_host_ratio', atMost(1.3)],
  ['spawn-block-2g', 'small_host_loop_ratio', atMost(1.3)],
  ['spawn-c64', 'peer_ratio', atLeast(2.5)],
  ['collect-2g', 'peer_ratio', atLeast(1.5)],
  ['collect-2g', 'memory_growth_kib', atMost(40 * 1024)],
  ['collect-spill-2g', 'peer_ratio', atLeast(1.5)],
  ['collect-spill-2g', 'memory_growth_kib', atMost(40 * 1024)],
  ['terminate-1', 'median_us', atMost(1000)],
  ['idle-500', 'cpu_percent', atMost(0.1)],
].map(([row, field, limit]) => ({ row, field, limit }))

/** A number that was not measured keeps no budget. */
function isKept(budget, finding) {
  const number = finding.numbers[budget.field]
  return number !== undefined && budget.limit.keeps(number)
}

function budgetsOf(finding) {
  return finding.impl === 'dsh-subprocess' ? BUDGETS.filter((budget) => budget.row === finding.row) : []
}

/** Says of each finding of this project whether it is within its row's budgets; `null` where it has none. */
export function judge(findings) {
  return findings.map((finding) => {
    const budgets = budgetsOf(finding)
    const withinBudget = budgets.length === 0 ? null : budgets.every((budget) => isKept(budget, finding))
    return { ...finding, withinBudget }
  })
}

/** Says of every budget that is missed what was found and what was allowed. */
export function misses(findings) {
  return findings.flatMap((finding) =>
    budgetsOf(finding)
      .filter((budget) => !isKept(budget, finding))
      .map(({ field, limit }) => {
        const number = finding.numbers[field]
        const found = number === undefined ? 'was not measured' : `is ${number.toFixed(2)}`
        return `${finding.row} (${finding.tier}): ${field} ${found}, the budget is ${limit.words}`
      }),
  )
}
