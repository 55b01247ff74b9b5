import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { NodeFolder } from '@sluice/sdk'
import { afterEach, expect, test } from 'vitest'
import { compareNodes } from './compare-nodes.ts'
import { FolderMarks } from './folder-marks.ts'

const folders: string[] = []
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function arrange() {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-marks-'))
  folders.push(dir)
  const marks = { a: new FolderMarks('a'), b: new FolderMarks('b') }
  const latest = new Map<string, NodeFolder>()
  return {
    dir,
    marks,
    async look(node: 'a' | 'b', path: string) {
      const seen = await marks[node].look(path, node === 'a' ? ['b'] : ['a'])
      latest.set(node, { name: 'workspace', path, digest: null, isUsable: seen.seen !== null, ...seen })
      return seen
    },
    texts: () =>
      compareNodes([...latest].map(([node, folder]) => ({ node, state: 'up' as const, report: { folders: [folder], programs: [] } }))).map(
        ({ text }) => text,
      ),
  }
}

const APART = 'The folder of workspace is not the same on all nodes (a | b): files that one node writes there are missing on others.'

test('nodes that see one folder find the mark of each other, whichever starts first', async () => {
  const { dir, look, texts } = arrange()
  await look('a', join(dir, 'new'))
  expect(await look('b', join(dir, 'new'))).toMatchObject({ mark: { count: 1 }, seen: { a: { count: 1 } }, problem: null })
  expect(texts()).toEqual([])
  for (let looks = 0; looks < 9; looks++) for (const node of ['b', 'a'] as const) await look(node, join(dir, 'new'))
  expect(texts()).toEqual([])
})

test('a copy of a folder is told from the folder within a few looks', async () => {
  const { dir, look, texts } = arrange()
  const [one, copy] = [join(dir, 'one'), join(dir, 'copy')]
  await look('a', one)
  await look('b', one)
  cpSync(one, copy, { recursive: true })
  for (let looks = 0; looks < 5; looks++) {
    await look('a', one)
    await look('b', copy)
  }
  expect(texts()).toEqual([APART])
})

test('a mount that went away is noticed, and good again when it is back', async () => {
  const { dir, look, texts } = arrange()
  const [mounted, empty, path] = [join(dir, 'mounted'), join(dir, 'empty'), join(dir, 'path')]
  mkdirSync(mounted)
  mkdirSync(empty)
  symlinkSync(mounted, path)
  const both = async () => {
    for (let looks = 0; looks < 5; looks++) {
      await look('a', mounted)
      await look('b', path)
    }
  }
  await both()
  expect(texts()).toEqual([])
  rmSync(path)
  symlinkSync(empty, path)
  await both()
  expect(texts()).toEqual([APART])
  rmSync(path)
  await both()
  expect(texts()).toEqual([expect.stringMatching(/^b cannot use its folder of workspace \(.*path\): ENOENT/)])
  symlinkSync(mounted, path)
  await both()
  expect(texts()).toEqual([])
})

test('follows no link that a command has put in the place of a mark', async () => {
  const { dir, look } = arrange()
  const folder = join(dir, 'folder')
  mkdirSync(folder)
  writeFileSync(join(dir, 'secret'), 'untouched')
  for (const name of ['.sluice-node-a', '.sluice-part-a']) symlinkSync(join(dir, 'secret'), join(folder, name))
  writeFileSync(join(dir, 'forged'), 'id 1\n')
  symlinkSync(join(dir, 'forged'), join(folder, '.sluice-node-b'))
  expect(await look('a', folder)).toMatchObject({ mark: { count: 1 }, seen: {}, problem: null })
  expect(readFileSync(join(dir, 'secret'), 'utf8')).toBe('untouched')
  expect(readdirSync(folder)).toEqual(['.sluice-node-a', '.sluice-node-b'])
})

test('a node that cannot write its mark says so, and is known by the marks that it reads', async () => {
  const { dir, look, texts } = arrange()
  mkdirSync(join(dir, '.sluice-node-b', 'full'), { recursive: true })
  await look('a', dir)
  expect(await look('b', dir)).toMatchObject({ mark: null, seen: { a: { count: 1 } }, problem: expect.stringMatching(/^\w+: /) })
  expect(texts()).toEqual([expect.stringMatching(/^b cannot write to its folder of workspace/)])
})

test('a deleted mark and a forged one are replaced at the next look', async () => {
  const { dir, look, texts } = arrange()
  await look('a', dir)
  await look('b', dir)
  rmSync(join(dir, '.sluice-node-a'))
  writeFileSync(join(dir, '.sluice-node-b'), 'forged 7\n')
  await look('a', dir)
  await look('b', dir)
  expect(texts()).toEqual([])
})

test('takes its marks away when the node stops', async () => {
  const { dir, look, marks } = arrange()
  await look('a', dir)
  await marks.a.leave()
  expect(existsSync(join(dir, '.sluice-node-a'))).toBe(false)
})
