import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { Worker } from 'node:worker_threads'
import { AppError, ERRORS, type Workspace } from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { handlePaths } from './folder.ts'
import { createWorkspace } from './workspace.ts'

const CANARY = 'canary: must be neither read nor written'
const bytes = (text: string) => new TextEncoder().encode(text)
const text = (value: Uint8Array) => new TextDecoder().decode(value)

let base = ''
let root = ''
let outside = ''
let workspace: Workspace

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'workspace-'))
  root = join(base, 'root')
  outside = join(base, 'outside')
  mkdirSync(join(root, 'dir/deep'), { recursive: true })
  mkdirSync(join(root, 'private'))
  mkdirSync(outside)
  mkdirSync(`${root}-beside`)
  for (const folder of [outside, `${root}-beside`]) writeFileSync(join(folder, 'canary.txt'), CANARY)
  writeFileSync(join(root, 'file.txt'), 'inside')
  writeFileSync(join(root, 'private/key'), CANARY)
  workspace = createWorkspace({ root, forbidden: ['private', '/etc', base] })
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

const code = (error: unknown) => (error instanceof AppError ? error.code : error)

const expectUntouched = () => {
  for (const folder of [outside, `${root}-beside`]) {
    expect(readdirSync(folder)).toEqual(['canary.txt'])
    expect(readFileSync(join(folder, 'canary.txt'), 'utf8')).toBe(CANARY)
  }
  expect(readFileSync(join(root, 'private/key'), 'utf8')).toBe(CANARY)
}

/** Paths that lead out of the workspace, with the code that reading them gives. `$out` and `$root` are replaced by the folders of the test. */
const ESCAPES: readonly [path: string, code: string][] = [
  ['..', 'forbidden'],
  ['../outside/canary.txt', 'forbidden'],
  ['../../../../../../../../etc/passwd', 'forbidden'],
  ['dir/../../outside/canary.txt', 'forbidden'],
  ['dir/..', 'forbidden'],
  ['./../outside/canary.txt', 'forbidden'],
  ['dir/./../../outside/canary.txt', 'forbidden'],
  ['dir//..//..//outside/canary.txt', 'forbidden'],
  ['new-folder/../../outside/new.txt', 'forbidden'],
  ['..\\outside\\canary.txt', 'forbidden'],
  ['dir\\..\\..\\outside', 'forbidden'],
  ['$root/../outside/canary.txt', 'forbidden'],
  ['$root-beside/canary.txt', 'forbidden'],
  ['$out/canary.txt', 'forbidden'],
  ['$out', 'forbidden'],
  ['//$out/canary.txt', 'forbidden'],
  ['/', 'forbidden'],
  ['/etc/passwd', 'forbidden'],
  ['/dev/stdin', 'forbidden'],
  ['/proc/self/environ', 'forbidden'],
  ['/proc/self/root$out/canary.txt', 'forbidden'],
  ['/proc/self/cwd/package.json', 'forbidden'],
  ['/proc/self/fd/0', 'forbidden'],
  ['/proc/self/fd/3/../outside', 'forbidden'],
  ['/proc/thread-self/root/etc/passwd', 'forbidden'],
  ['file.txt\0', 'forbidden'],
  ['file.txt\0/../../outside/canary.txt', 'forbidden'],
  ['..\0', 'forbidden'],
  ['link-file', 'forbidden'],
  ['link-folder', 'forbidden'],
  ['link-folder/canary.txt', 'forbidden'],
  ['link-folder/new/deep.txt', 'forbidden'],
  ['link-relative/canary.txt', 'forbidden'],
  ['dir/deep/link-up/outside/canary.txt', 'forbidden'],
  ['link-root/etc/passwd', 'forbidden'],
  ['link-proc/canary.txt', 'forbidden'],
  ['link-proc-root/etc/passwd', 'forbidden'],
  ['link-twice/canary.txt', 'forbidden'],
  ['link-inside', 'forbidden'],
  ['link-inside-folder/deep', 'forbidden'],
  ['link-loop', 'forbidden'],
  ['link-dangling', 'forbidden'],
  ['$root/link-folder/canary.txt', 'forbidden'],
  ['link-private/key', 'forbidden'],
  ['hard.txt', 'forbidden'],
  ['dir/hard.txt', 'forbidden'],
  ['fifo', 'forbidden'],
  ['socket', 'forbidden'],
  ['private', 'forbidden'],
  ['private/key', 'forbidden'],
  ['./private//key', 'forbidden'],
  ['$root/private/key', 'forbidden'],
  ['file.txt/../../outside/canary.txt', 'forbidden'],
  ['file.txt/canary.txt', 'not_found'],
  ['~/canary.txt', 'not_found'],
  ['~root/canary.txt', 'not_found'],
  ['..%2foutside%2fcanary.txt', 'not_found'],
  ['%2e%2e/outside/canary.txt', 'not_found'],
  ['.../outside/canary.txt', 'not_found'],
  ['．．/outside/canary.txt', 'not_found'],
  ['$HOME/canary.txt', 'not_found'],
  ['a'.repeat(300), 'invalid_request'],
  ['a/'.repeat(3000), 'invalid_request'],
]

const layTraps = async () => {
  symlinkSync(join(outside, 'canary.txt'), join(root, 'link-file'))
  symlinkSync(outside, join(root, 'link-folder'))
  symlinkSync('../outside', join(root, 'link-relative'))
  symlinkSync('../../..', join(root, 'dir/deep/link-up'))
  symlinkSync('/', join(root, 'link-root'))
  symlinkSync(`/proc/self/root${outside}`, join(root, 'link-proc'))
  symlinkSync('/proc/self/root', join(root, 'link-proc-root'))
  symlinkSync('link-folder', join(root, 'link-twice'))
  symlinkSync('file.txt', join(root, 'link-inside'))
  symlinkSync('dir', join(root, 'link-inside-folder'))
  symlinkSync('link-loop', join(root, 'link-loop'))
  symlinkSync(join(outside, 'new.txt'), join(root, 'link-dangling'))
  symlinkSync('private', join(root, 'link-private'))
  linkSync(join(outside, 'canary.txt'), join(root, 'hard.txt'))
  linkSync(join(outside, 'canary.txt'), join(root, 'dir/hard.txt'))
  execFileSync('mkfifo', [join(root, 'fifo')])
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(join(root, 'socket'), resolve))
  return server
}

const kinds: [string, string | null][] = [['without handle paths', null]]
const handles = handlePaths()
if (handles) kinds.push(['with handle paths', handles])

/** Makes `way` a folder and a link to outside in turn, as fast as possible. */
const SWAPPER = `
  const { mkdirSync, rmSync, symlinkSync } = require('node:fs')
  const { way, outside, ended } = require('node:worker_threads').workerData
  const attempt = (change) => { try { change() } catch {} }
  while (Atomics.load(ended, 0) === 0) {
    attempt(() => mkdirSync(way))
    attempt(() => rmSync(way, { recursive: true, force: true }))
    attempt(() => symlinkSync(outside, way))
    attempt(() => rmSync(way, { recursive: true, force: true }))
  }`

describe.each(kinds)('%s', (_kind, handles) => {
  test('refuse more than forty paths that lead out', async () => {
    expect(ESCAPES.length).toBeGreaterThan(40)
    const gate = createWorkspace({ root, forbidden: ['private'], handles })
    const server = await layTraps()
    try {
      const paths = ESCAPES.map(([pattern, code]) => [pattern.replace('$out', outside).replace('$root', root), code] as const)
      for (const [path, refused] of paths) {
        expect(await gate.read(path, { bytesMax: 10_000 }).then(text, code), `read ${path}`).toBe(refused)
        expect(await gate.open(path, { bytesMax: 10_000 }).then(() => 'opened', code), `open ${path}`).toBe(refused)
        const listed = await gate.list(path, { limit: 100 }).catch(code)
        expect(ERRORS, `list ${path}`).toHaveProperty(String(listed))
        const written = await gate.write(path, bytes('overwritten')).catch(code)
        if (refused !== 'not_found') expect(written, `write ${path}`).toBe(refused)
        expectUntouched()
      }
      for (const [path] of paths) {
        const removed = await gate.remove(path).catch(code)
        if (removed !== undefined) expect(ERRORS, `remove ${path}`).toHaveProperty(String(removed))
        expectUntouched()
      }
    } finally {
      server.close()
    }
  })

  test('do not follow a link that replaces a folder between check and use', async () => {
    const gate = createWorkspace({ root, forbidden: [], handles })
    const ended = new Int32Array(new SharedArrayBuffer(4))
    const swapper = new Worker(SWAPPER, { eval: true, workerData: { way: join(root, 'way'), outside, ended } })
    await new Promise((resolve) => swapper.once('online', resolve))
    const seen = new Set<string>()
    for (let round = 0; round < 400; round++) {
      const read = await gate.read('way/canary.txt', { bytesMax: 1000 }).then(text, (error: AppError) => error.code)
      const written = await gate.write('way/canary.txt', bytes('mine')).catch((error: AppError) => error.code)
      seen.add(read).add(String(written))
      // Without handle paths a write may be led astray, so only reads are checked there.
      if (read === CANARY) throw new Error('the canary was read')
      if (handles && readFileSync(join(outside, 'canary.txt'), 'utf8') !== CANARY) throw new Error('the canary was written')
    }
    Atomics.store(ended, 0, 1)
    await new Promise((resolve) => swapper.once('exit', resolve))
    if (handles) expect(readdirSync(outside)).toEqual(['canary.txt'])
    expect([...seen].every((outcome) => ['mine', 'undefined', 'not_found', 'forbidden', 'conflict'].includes(outcome))).toBe(true)
  })

  test('read back exactly the written bytes, also where folders were missing', async () => {
    const gate = createWorkspace({ root, forbidden: [], handles })
    await gate.write('a/b/c.txt', bytes('one'))
    await gate.write('a/b/c.txt', bytes('two'))
    await gate.write(join(root, 'a/d.txt'), bytes('three'))
    expect(text(await gate.read('./a//b/c.txt', { bytesMax: 3 }))).toBe('two')
    expect(text(await gate.read('a/d.txt', { bytesMax: 10 }))).toBe('three')
    expect(readdirSync(join(root, 'a/b'))).toEqual(['c.txt'])
  })
})

test('a refused path through a link leaves no file or folder', async () => {
  symlinkSync(outside, join(root, 'dir/link'))
  await expect(workspace.write('dir/link/made/new.txt', bytes('x'))).rejects.toMatchObject({ code: 'forbidden' })
  await expect(workspace.write('made/../../outside/new.txt', bytes('x'))).rejects.toMatchObject({ code: 'forbidden' })
  expect(existsSync(join(root, 'made'))).toBe(false)
  expectUntouched()
})

test('removing a link keeps its target', async () => {
  symlinkSync(join(outside, 'canary.txt'), join(root, 'link'))
  await workspace.remove('link')
  expect(existsSync(join(root, 'link'))).toBe(false)
  expectUntouched()
})

test('the first write makes the root with mode 0700', async () => {
  const fresh = createWorkspace({ root: join(base, 'new/root'), forbidden: [] })
  expect(await fresh.list('.', { limit: 5 })).toEqual({ entries: [], more: false })
  await expect(fresh.read('a.txt', { bytesMax: 5 })).rejects.toMatchObject({ code: 'not_found' })
  await expect(fresh.write('../a.txt', bytes('x'))).rejects.toMatchObject({ code: 'forbidden' })
  expect(existsSync(join(base, 'new'))).toBe(false)
  await fresh.write('a.txt', bytes('x'))
  expect(statSync(join(base, 'new/root')).mode & 0o777).toBe(0o700)
})

test('a root that is a link accepts absolute paths of both spellings', async () => {
  symlinkSync(root, join(base, 'alias'))
  const gate = createWorkspace({ root: join(base, 'alias'), forbidden: [join(root, 'private')] })
  for (const path of ['file.txt', join(base, 'alias/file.txt'), join(root, 'file.txt')]) {
    expect(text(await gate.read(path, { bytesMax: 10 }))).toBe('inside')
  }
  await expect(gate.read('private/key', { bytesMax: 100 })).rejects.toMatchObject({ code: 'forbidden' })
})

test('a forbidden folder around the workspace forbids nothing inside it', async () => {
  expect(relative(base, root)).toBe('root')
  expect(text(await workspace.read('file.txt', { bytesMax: 10 }))).toBe('inside')
  const shut = createWorkspace({ root, forbidden: [root] })
  await expect(shut.read('file.txt', { bytesMax: 10 })).rejects.toMatchObject({ code: 'forbidden' })
})

test('the limit on bytes is exact', async () => {
  expect(text(await workspace.read('file.txt', { bytesMax: 6 }))).toBe('inside')
  await expect(workspace.read('file.txt', { bytesMax: 5 })).rejects.toMatchObject({ code: 'too_large' })
  await workspace.write('empty', new Uint8Array())
  expect((await workspace.read('empty', { bytesMax: 0 })).length).toBe(0)
})

test('a large file is opened and read in pieces, up to the size that it had', async () => {
  const content = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 251))
  await workspace.write('large', content)
  await expect(workspace.open('large', { bytesMax: content.length - 1 })).rejects.toMatchObject({ code: 'too_large' })
  await using file = await workspace.open('large', { bytesMax: content.length })
  const first = await file.read()
  expect(first.length).toBeLessThan(content.length)
  appendFileSync(join(root, 'large'), 'more')
  const pieces = [first]
  for (let piece = await file.read(); piece.length > 0; piece = await file.read()) pieces.push(piece)
  expect(Buffer.concat(pieces).equals(content)).toBe(true)
  await using shortened = await workspace.open('large', { bytesMax: 1_000_000 })
  truncateSync(join(root, 'large'), 10)
  await shortened.read()
  await expect(shortened.read()).rejects.toMatchObject({ code: 'conflict' })
})

test('a rewritten file keeps its mode', async () => {
  chmodSync(join(root, 'file.txt'), 0o750)
  await workspace.write('file.txt', bytes('again'))
  expect(statSync(join(root, 'file.txt')).mode & 0o777).toBe(0o750)
})

test('a list is sorted, typed and capped', async () => {
  symlinkSync(outside, join(root, 'link'))
  const all = await workspace.list('', { limit: 10 })
  expect(all.entries.map(({ name, kind, bytes }) => [name, kind, bytes])).toEqual([
    ['dir', 'folder', 0],
    ['file.txt', 'file', 6],
    ['link', 'link', 0],
    ['private', 'folder', 0],
  ])
  expect(all.more).toBe(false)
  expect(await workspace.list(root, { limit: 2 })).toMatchObject({ entries: [{ name: 'dir' }, { name: 'file.txt' }], more: true })
  await expect(workspace.list('file.txt', { limit: 2 })).rejects.toMatchObject({ code: 'not_found' })
})

test('a folder is not read as a file, nor a file listed as a folder', async () => {
  await expect(workspace.read('dir', { bytesMax: 10 })).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(workspace.write('dir', bytes('x'))).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(workspace.write('.', bytes('x'))).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(workspace.remove('.')).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(workspace.remove('dir')).rejects.toMatchObject({ code: 'conflict' })
  await workspace.remove('dir/deep')
  expect(existsSync(join(root, 'dir/deep'))).toBe(false)
})

test('no list has the folder of a sandbox that is tried out', async () => {
  mkdirSync(join(root, '.sluice-proof-a1b2c3'))
  mkdirSync(join(root, '.sluice'))
  const { entries } = await workspace.list('.', { limit: 50 })
  expect(entries.map(({ name }) => name).filter((name) => name.startsWith('.sluice'))).toEqual(['.sluice'])
})
