// Writes a new feature with one tool and one key of configuration: `pnpm create:feature tool-<name>`. Adds its row to the catalogue, itself to
// profiles/always.ts, to the root package.json, to the lockfile and to the documentation, so that every check passes at once. `--no-install`
// leaves the lockfile, node_modules and the documentation as they are.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { ROWS } from '../packages/sdk/src/feature/catalogue.ts'
import { addToRoot, run, writePackage } from './create-package.mjs'

const ROOT = resolve(import.meta.dirname, '..')
const CATALOGUE = 'packages/sdk/src/feature/catalogue.ts'
const PROFILE = 'profiles/always.ts'
const USAGE = 'usage: pnpm create:feature tool-<name> [--no-install]'
/** A name is a configuration key and the name of a tool. */
const NAME = /^tool-([a-z][a-z0-9]{1,30}(?:-[a-z0-9]{1,30})?)$/

function fail(message) {
  process.stderr.write(`${message}\n${USAGE}\n`)
  process.exit(2)
}

function readArguments() {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { 'no-install': { type: 'boolean' } } })
    if (positionals.length !== 1) fail(`Give one name; got ${positionals.length}.`)
    return { id: positionals[0], isInstalled: values['no-install'] !== true }
  } catch (error) {
    return fail(error.message)
  }
}

/** Returns the name without its family. Ends the process if no feature can have it. */
function nameOf(id) {
  if (id.startsWith('channel-')) fail(`'pnpm create:channel ${id.slice('channel-'.length)}' makes a channel.`)
  const [, name] = NAME.exec(id) ?? []
  if (name === undefined)
    fail(`'${id}' cannot be created: it must be 'tool-' and lower-case letters, digits and a dash. Copy a sibling for another family.`)
  const isKnown = ROWS.some(([known, { tools = [] }]) => known === id || tools.includes(name.replaceAll('-', '_')))
  if (isKnown || existsSync(join(ROOT, 'packages', id))) fail(`There is a feature or a tool '${name}' already.`)
  return name
}

function edit(file, change) {
  const path = join(ROOT, file)
  const before = readFileSync(path, 'utf8')
  const after = change(before)
  if (after === before) throw new Error(`${file} has no place for the feature; scripts/create-feature.mjs looks for one`)
  writeFileSync(path, after)
}

const { id, isInstalled } = readArguments()
const name = nameOf(id)
const key = name.replaceAll('-', '_')
const variable = name.replace(/-(\w)/, (_, letter) => letter.toUpperCase())
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const values = { name, key, tool: key, variable, Name: variable.charAt(0).toUpperCase() + variable.slice(1), version }

const files = writePackage(join(ROOT, 'packages', id), values, [join(import.meta.dirname, 'create-feature')])
addToRoot(`@sluice/${id}`)
const row = `'${id}': { ...always, kind: 'tool', summary: 'Count the words of a text', section: 'tools.${key}', tools: ['${key}'] },`
edit(CATALOGUE, (text) => text.replace(/^ {2}'tool-memory'/m, `  ${row}\n$&`))
edit(PROFILE, (text) => `import ${variable} from '@sluice/${id}'\n${text.replace('const tools = [', `$&${variable}, `)}`)
run(join(ROOT, 'node_modules', '.bin', 'biome'), 'check', '--write', 'package.json', CATALOGUE, PROFILE, join('packages', id))
const isDone = isInstalled && run('pnpm', 'install', '--prefer-offline', '--no-frozen-lockfile') && run('node', 'scripts/docs.mjs')
console.log(
  [
    `Wrote packages/${id} with ${files.length} files, its row in ${CATALOGUE}, and its lines in ${PROFILE} and package.json.`,
    ...(isDone ? [] : ["Then run 'npm run update:lockfile' and 'pnpm docs:generate'."]),
    `Its tool counts words; replace it by your own, with the summary in the catalogue and the description in its package.json. Then check it:`,
    '',
    '  pnpm docs:generate',
    `  pnpm unit packages/${id} qa/src/repo.test.ts qa/src/tool-decisions.test.ts`,
    '  pnpm types && pnpm lint',
  ].join('\n'),
)
