import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { hasFilesOfOthers, isFileOfOthers, leadsToFilesOfOthers } from './files-of-others.ts'

const made: string[] = []
afterEach(() => {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true })
})

const workspace = (...files: string[]) => {
  const root = mkdtempSync(join(tmpdir(), 'others-'))
  made.push(root)
  for (const file of files) {
    mkdirSync(join(root, dirname(file)), { recursive: true })
    if (!file.endsWith('/.')) writeFileSync(join(root, file), 'x')
  }
  return root
}

describe('a path of others is known by its text', () => {
  test.each([
    'attachments',
    'attachments/',
    './attachments//x.txt',
    'attachments/device_3aa/x.txt',
    'ATTACHMENTS/x',
    'Attachments',
    'a/../attachments/x',
    'attachments/../attachments/x',
    '/srv/data/workspace/attachments/x',
    'attachments\\x',
    'attachmentſ/x',
    'attach\u200dments/x',
    'attachments./x',
    'ATTACH~1/x',
    'attachments::$INDEX_ALLOCATION/x',
    'results/device_2fa/1.txt',
    'results/sop_3aalarm/1.txt',
    'Results/__aa',
  ])('%j', (path) => {
    expect(isFileOfOthers(path)).toBe(true)
  })

  test.each(['notes.txt', 'my-attachments/x', 'attachments.txt', 'results/2026/x', 'results', 'docs/results/x'])('but not %j', (path) => {
    expect(isFileOfOthers(path)).toBe(false)
  })

  test('folders above such files lead to them', () => {
    const root = '/data/workspace'
    const leads = (path: string) => leadsToFilesOfOthers(root, path)
    expect(['.', './', '', '/data/workspace', 'results', '../workspace', 'attachments'].filter((path) => !leads(path))).toEqual([])
    expect(['notes', './notes/a.txt', '/data/workspace/notes'].filter(leads)).toEqual([])
  })
})

describe('a workspace has files of others', () => {
  test.each([
    ['attachments/0123456789abcdef.txt'],
    ['attachments/device_3aa/x.txt'],
    ['Attachments/x.txt'],
    ['attachments/a/b/c/d.txt'],
    ['results/device_2fa/1.txt'],
  ])('with %s', (file) => {
    expect(hasFilesOfOthers(workspace(file))).toBe(true)
  })

  test.each([['notes.txt'], ['attachments/.'], ['attachments/device_3aa/.'], ['results/2026/x.txt']])('but not with %s', (file) => {
    expect(hasFilesOfOthers(workspace(file))).toBe(false)
  })

  test('behind a link to the folder that has them', () => {
    const root = workspace('notes.txt')
    symlinkSync(dirname(join(workspace('kept/x.txt'), 'kept/x.txt')), join(root, 'attachments'))
    expect(hasFilesOfOthers(root)).toBe(true)
  })

  test('when the folder cannot be read', () => {
    const root = workspace('notes.txt')
    symlinkSync('attachments', join(root, 'attachments'))
    expect(hasFilesOfOthers(root)).toBe(true)
  })

  test('a missing workspace has none', () => {
    expect(hasFilesOfOthers('/missing/workspace')).toBe(false)
  })
})
