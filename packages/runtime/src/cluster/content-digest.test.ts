import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { ContentDigest } from './content-digest.ts'

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

const digest = (path: string, counts?: (file: string) => boolean) => new ContentDigest().of([{ name: '', path }], counts)

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
  expect(await digest(folder({ 'notes/README': 'x' }), (file) => file.endsWith('.toml'))).toBe(empty)
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
  await expect(digest(root)).rejects.toThrow('folders deep')
})
