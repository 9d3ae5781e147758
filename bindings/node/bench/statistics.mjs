/** Medians. */

function sorted(samples) {
  if (samples.length === 0) throw new Error('a quantile needs a sample')
  return [...samples].sort((left, right) => left - right)
}

/** The middle sample, or the mean of the two in the middle. */
export function median(samples) {
  const order = sorted(samples)
  const count = order.length
  return (order[(count - 1) >> 1] + order[count >> 1]) / 2
}

/** The 95th percentile: a sample that at most five percent exceed. */
export function p95(samples) {
  const order = sorted(samples)
  return order[Math.ceil(order.length * 0.95) - 1]
}

/**
 * The median of the ratios of samples that were taken in the same round.
 *
 * A slow moment of the machine lasts longer than a round, so it is in both samples of a pair and falls out of their ratio; it would
 * not fall out of the ratio of two medians.
 */
export function pairedRatio(samples, base) {
  return median(samples.map((sample, round) => sample / base[round]))
}
