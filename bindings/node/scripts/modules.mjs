// Writes the face of the built package for ECMAScript modules, beside the CommonJS it wraps, so that there is one state for both:
//
//     node scripts/modules.mjs DIRECTORY
//
// The names are those that the CommonJS exports, so the two cannot drift apart.
import { createRequire } from 'node:module'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const directory = resolve(process.argv[2])
const built = createRequire(import.meta.url)(join(directory, 'index.js'))
const names = Object.keys(built)
  .filter((name) => name !== 'default')
  .sort()
const main = names.find((name) => built[name] === built.default)
if (main === undefined) {
  throw new Error('the default export of index.ts is none of its names, so its type cannot be told to modules')
}

writeFileSync(
  join(directory, 'index.mjs'),
  `import commonjs from './index.js'

export const {
${names.map((name) => `  ${name},\n`).join('')}} = commonjs
export default commonjs.default
`,
)
// A module that imports the default of a CommonJS file gets the whole of it, in Node.js and in its types: so it is named.
writeFileSync(
  join(directory, 'index.d.mts'),
  `export * from './index.js'
export { ${main} as default } from './index.js'
`,
)
