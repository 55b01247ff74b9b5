import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { type ChosenFiles, ContentDigest } from './content-digest.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function folder(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'sluice-digest-'))
  folders.push(root)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  return root
}

const digest = (path: string, chosen?: ChosenFiles) => new ContentDigest().of([{ name: '', path }], chosen)

test('equal files have one digest, wherever they are; names and contents count', async () => {
  const files = { 'deploy/SOP.toml': 'a', 'deploy/SOP.md': 'b' }
  const first = await digest(folder(files))
  expect(first).toMatch(/^[0-9a-f]{64}$/)
  expect(await digest(folder({ ...files, '.git/config': 'x', 'deploy/.SOP.md.swp': 'y' }))).toBe(first)
  for (const other of [
    { ...files, 'deploy/SOP.md': 'c' },
    { ...files, 'deploy/run.sh': '' },
    { 'deploy/SOP.toml': 'a', 'dep/SOP.md': 'b' },
  ])
    expect(await digest(folder(other))).not.toBe(first)
})

test('a missing folder is like an empty one, and files that do not count are left out', async () => {
  const empty = await digest('/nonexistent/sluice')
  expect(await digest(folder({ 'notes/README': 'x' }), { counts: (file) => file.endsWith('.toml') })).toBe(empty)
})

test('a changed file is noticed although its size and time are the same', async () => {
  const root = folder({ 'a/SOP.md': 'one' })
  const { atime, mtime } = statSync(join(root, 'a/SOP.md'))
  const kept = new ContentDigest()
  const before = await kept.of([{ name: '', path: root }])
  expect(await kept.of([{ name: '', path: root }])).toBe(before)
  writeFileSync(join(root, 'a/SOP.md'), 'two')
  utimesSync(join(root, 'a/SOP.md'), atime, mtime)
  expect(await kept.of([{ name: '', path: root }])).not.toBe(before)
})

test('links that lead nowhere or in a circle do not hang it', async () => {
  const root = folder({ 'a/SOP.md': 'one' })
  const before = await digest(root)
  symlinkSync('/nonexistent/sluice', join(root, 'gone'))
  expect(await digest(root)).toBe(before)
  symlinkSync(root, join(root, 'circle'))
  expect(await digest(root)).toMatch(/^[0-9a-f]{64}$/)
  // Three circles have more paths than can be followed.
  for (const name of ['second', 'third']) symlinkSync(root, join(root, name))
  await expect(new ContentDigest(1000).of([{ name: '', path: root }])).rejects.toThrow('there are more than 1000 files and folders')
  expect(await digest(root, { depth: 1 })).toMatch(/^[0-9a-f]{64}$/)
})

test('files in folders that are too deep do not count', async () => {
  const files = { 'a/SOP.md': 'one' }
  expect(await digest(folder({ ...files, 'a/b/c/notes': 'x' }), { depth: 1 })).toBe(await digest(folder(files)))
  expect(await digest(folder({ ...files, [`${'d/'.repeat(13)}notes`]: 'x' }))).toBe(await digest(folder(files)))
})
