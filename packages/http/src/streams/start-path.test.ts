/** The daemon starts without the WebSocket library. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test('imports ws only for types, or with the first socket', () => {
  const sources = globSync('*.ts', { cwd: import.meta.dirname }).filter((file) => !file.includes('.test.'))
  const imports = sources.flatMap(
    (file) => readFileSync(join(import.meta.dirname, file), 'utf8').match(/^.*(?:from |import\()'ws'.*$/gm) ?? [],
  )
  expect(imports.filter((line) => !line.startsWith('import type '))).toEqual(["    const ws = await import('ws')"])
})
