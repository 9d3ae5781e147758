/** A host: the program that has one contender and takes its samples, each when it is asked for. */
import { ROWS } from '../rows/index.mjs'

/** The size of one buffer: below every limit there is. */
const PIECE = 2 ** 28

const call = JSON.parse(process.argv[2])

/** Memory that this host has, every page of it touched. */
const memory = []

function grow(bytes) {
  for (let had = 0; had < bytes; had += PIECE) memory.push(Buffer.alloc(Math.min(PIECE, bytes - had), 1))
}

// An interrupt from the keyboard reaches the bench, too, which then lets go: this host ends what it started, and exits.
process.on('SIGINT', () => {})

async function open() {
  const { default: open } = await import(`../contenders/${call.contender}.mjs`)
  const contender = await open(call.ownership)
  const row = ROWS.find((row) => row.name === call.row)
  grow(call.memory)
  return { contender, measured: await row.open(contender, call.parameters) }
}

const opened = open()

process.on('message', async () => {
  try {
    const { measured } = await opened
    process.send({ sample: await measured.sample() })
  } catch (error) {
    process.send({ error: error.message })
  }
})

process.on('disconnect', async () => {
  let status = 0
  try {
    const { contender, measured } = await opened
    await measured.close?.()
    await contender.close()
  } catch {
    // Whoever asked has been told, or is gone.
    status = 1
  }
  process.exit(status)
})

opened.then(
  ({ contender }) => process.send({ tier: contender.tier }),
  (error) => process.send({ error: error.message }),
)
