/** The examples of configuration in the READMEs of packages are valid. */
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseConfig } from '@sluice/config'
import { type Feature, ROWS } from '@sluice/sdk'
import { expect, test } from 'vitest'

const ROOT = resolve(import.meta.dirname, '../../..')

/** The blocks that begin with a section of the configuration; blocks of other TOML files follow a sentence that names the file. */
const examples = globSync('packages/*/README.md', { cwd: ROOT }).flatMap((file) => {
  const text = readFileSync(join(ROOT, file), 'utf8')
  const blocks = [...text.matchAll(/^(.*)\n\n```toml\n(.*?)^```$/gms)].filter(([, before = '']) => !/`\w+\.toml`[^`]*$/.test(before))
  return blocks.map(([, , toml = '']) => ({ file, toml }))
})

test('the search for examples finds them', () => {
  expect(examples.length).toBeGreaterThan(30)
})

test('every example is a valid configuration', { timeout: 60_000 }, async () => {
  const ids = ROWS.map(([id]) => id)
  const features = await Promise.all(
    ids.map(async (id) => ((await import(join(ROOT, 'packages', id, 'src/index.ts'))) as { default: Feature }).default),
  )
  const source = { configFile: '/none/config.toml', dataDir: '/none', features, env: {} }
  const problems: string[] = []
  for (const { file, toml } of examples) {
    await parseConfig(source, toml).catch((error: Error) => problems.push(`${file}: ${error.message}`))
  }
  expect(problems).toEqual([])
  await expect(parseConfig(source, '[tools.shell]\ntimeout = 1')).rejects.toThrow('timeout')
})
