/** Taking turns: everything a row compares is sampled once per round. */

/** Rounds at least, however long they take. */
const FEWEST = 3

/** Makes the orders of the rounds, the same in every run: xorshift, from any number but 0. */
function shuffler() {
  let state = 1
  const below = (limit) => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) % limit
  }
  return (list) => {
    const order = [...list]
    for (let at = order.length - 1; at > 0; at -= 1) {
      const other = below(at + 1)
      ;[order[at], order[other]] = [order[other], order[at]]
    }
    return order
  }
}

/**
 * Samples all entrants once per round, and returns the samples of each in the order of the rounds.
 *
 * Each round has an order of its own: what an entrant leaves to be done after its sample (a thread that tidies up, a process that
 * is taken apart) would otherwise always fall on the same successor. A peer that fails is left out, and why is told on standard
 * error; a failure of this project ends the run.
 *
 * @param {{ name: string, isPeer: boolean, sample: () => Promise<object> }[]} entrants
 * @param {{ warmUp: number, rounds: number, seconds: number }} effort rounds that are thrown away, rounds at most, and the time
 *   after which no further one begins
 * @param {number} [asked] rounds that were asked for: as many are taken, however long they last
 * @returns {Promise<{ entrant: object, samples: object[] }[]>}
 */
export async function take(entrants, effort, asked) {
  const rounds = asked ?? effort.rounds
  const time = asked === undefined ? effort.seconds * 1000 : Infinity
  const shuffled = shuffler()
  let taken = entrants.map((entrant) => ({ entrant, samples: [] }))
  let started = performance.now()
  for (let round = -effort.warmUp; round < rounds; round += 1) {
    if (round === 0) started = performance.now()
    else if (round >= FEWEST && performance.now() - started >= time) break
    const complete = []
    for (const one of shuffled(taken)) {
      try {
        const sample = await one.entrant.sample()
        complete.push({ one, sample })
      } catch (error) {
        if (!one.entrant.isPeer) throw new Error(`${one.entrant.name}: ${error.message}`, { cause: error })
        process.stderr.write(`left out: ${one.entrant.name}: ${error.message}\n`)
        taken = taken.filter((other) => other !== one)
      }
    }
    // Samples are kept by whole rounds, so that those of one round stay partners.
    if (round >= 0) for (const { one, sample } of complete) one.samples.push(sample)
  }
  return taken
}
