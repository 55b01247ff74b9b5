import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { loadFixtures } from './channel-fixtures.ts'

test('loads fixtures sorted by name; a text body stays as it is, any other is JSON', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fixtures-'))
  try {
    writeFileSync(join(folder, 'b.json'), JSON.stringify({ headers: { 'x-kind': 'text' }, body: 'a=b', expect: [] }))
    writeFileSync(join(folder, 'a.json'), JSON.stringify({ body: { n: 1 }, expect: [{ id: 'm1' }] }))
    writeFileSync(join(folder, 'README.md'), 'not a fixture')
    expect(loadFixtures(pathToFileURL(`${folder}/`))).toEqual([
      { name: 'a', headers: {}, body: '{"n":1}', expect: [{ id: 'm1' }] },
      { name: 'b', headers: { 'x-kind': 'text' }, body: 'a=b', expect: [] },
    ])
    writeFileSync(join(folder, 'c.json'), JSON.stringify({ body: '', expected: [] }))
    expect(() => loadFixtures(pathToFileURL(`${folder}/`))).toThrow()
  } finally {
    rmSync(folder, { recursive: true })
  }
})
