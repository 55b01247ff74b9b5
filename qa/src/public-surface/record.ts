/** Records the public surface of the release in package.json: `pnpm surface:record`, after `npm run build:full`. A record never changes. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../daemons/bundle.ts'
import { collectSurface } from './collect.ts'
import { RECORDS } from './surfaces.ts'

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }
const folder = join(RECORDS, version)

if (existsSync(folder)) {
  console.error(
    `Release ${version} is recorded already, and a record never changes. Set the version of the next release in package.json first.`,
  )
  process.exitCode = 2
} else {
  const surface = await collectSurface('full')
  mkdirSync(folder)
  for (const [name, items] of Object.entries(surface)) {
    const sorted = Object.fromEntries(Object.entries(items).toSorted(([a], [b]) => (a < b ? -1 : 1)))
    // One item per line keeps the difference between two releases readable.
    const lines = Object.entries(sorted).map(([item, value]) => `${JSON.stringify(item)}: ${JSON.stringify(value)}`)
    writeFileSync(join(folder, `${name}.json`), `{\n${lines.join(',\n')}\n}\n`)
  }
  console.log(`recorded ${folder}; empty ACCEPTED in qa/src/public-surface/accepted.ts and commit both`)
}
