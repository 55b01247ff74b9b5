/** The joining of the files that a start of a bundle loads. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { build } from 'esbuild'
import { afterEach, beforeEach, expect, test } from 'vitest'

const { joinChunks } = (await import(resolve(import.meta.dirname, '../../scripts/join-chunks.mjs'))) as {
  joinChunks(options: {
    readonly folder: string
    readonly entry: string
    readonly entries: readonly string[]
    readonly profile: readonly string[]
    readonly daemon: readonly string[]
    readonly minify: boolean
  }): Promise<void>
}

/** Two modules that the profile and later files share, two that the daemon and later files share, and one that says when it is evaluated. */
const SOURCES = {
  'entry.mjs': "await import('./profile.mjs')",
  'profile.mjs': `import { one } from './one.mjs'; import { two } from './two.mjs'
    const { run } = await import('./daemon.mjs'); console.log('profile', one.name, two(), await run())`,
  'daemon.mjs': `import { one } from './one.mjs'; import { three } from './three.mjs'; import { four, $ } from './four.mjs'
    export const run = async () => [(await import('./early.mjs')).all(), (await import('./late.mjs')).all(), one.name, three, $, four.length].join()`,
  'early.mjs': `import { one } from './one.mjs'; import { three } from './three.mjs'; one.seen++; export const all = () => 'early' + one.seen + three`,
  'late.mjs': `import { one } from './one.mjs'; import { two } from './two.mjs'; import { four } from './four.mjs'
    one.seen++; export const all = () => 'late' + one.seen + two() + four.length`,
  'one.mjs': "console.log('one is evaluated'); export const one = { name: 'ONE', seen: 0 }",
  'two.mjs': "import { one } from './one.mjs'; console.log('two is evaluated'); export const two = () => one.name + 2",
  'three.mjs': "console.log('three is evaluated'); export const three = 'THREE'",
  'four.mjs':
    "import { two } from './two.mjs'; console.log('four is evaluated'); export const four = ['./three.mjs']; export const $ = two()",
}

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'sluice-joined-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** Builds the sources into a folder, and joins them unless told otherwise. Returns what the bundle prints, and its files. */
async function bundle(name: string, { minify = true, isJoined = true, sources = SOURCES } = {}) {
  const from = join(root, 'sources')
  const folder = join(root, name)
  mkdirSync(from, { recursive: true })
  for (const [file, text] of Object.entries(sources)) writeFileSync(join(from, file), text)
  const options = { format: 'esm', bundle: true, splitting: true, minify, metafile: true, outExtension: { '.js': '.mjs' } } as const
  const { metafile } = await build({ ...options, entryPoints: [join(from, 'entry.mjs')], outdir: folder, absWorkingDir: root })
  const entries = Object.keys(metafile.outputs).filter((file) => metafile.outputs[file]?.entryPoint)
  const of = (source: string) =>
    entries.filter((file) => metafile.outputs[file]?.entryPoint?.endsWith(source)).map((file) => basename(file))
  const roots = { profile: of('/profile.mjs'), daemon: of('/daemon.mjs') }
  if (isJoined) await joinChunks({ folder, entry: 'entry.mjs', entries: entries.map((file) => basename(file)), ...roots, minify })
  const { stdout, stderr } = spawnSync(process.execPath, [join(folder, 'entry.mjs')], { encoding: 'utf8' })
  return { printed: stdout + stderr, files: readdirSync(folder).sort() }
}

test.each([true, false])(
  'a joined bundle does what it did before, and evaluates each module once and in its order; minified: %s',
  async (minify) => {
    const before = await bundle('before', { minify, isJoined: false })
    expect(before.printed).toContain('profile ONE ONE2 early1THREE,late2ONE21,ONE,THREE,ONE2,1')
    const { printed, files } = await bundle('joined', { minify })
    expect(printed).toBe(before.printed)
    expect(files.length).toBeLessThan(before.files.length)
    expect(files.filter((file) => /^(?:profile|daemon)-parts-/.test(file))).toHaveLength(2)
  },
)

test('every file but the entry gets another name when a joined part changes, because a daemon of the former build still loads its own', async () => {
  const first = await bundle('first')
  const again = await bundle('again')
  const changed = await bundle('changed', { sources: { ...SOURCES, 'two.mjs': `${SOURCES['two.mjs']}; console.log('new')` } })
  expect(again.files).toEqual(first.files)
  expect(changed.files.filter((file) => first.files.includes(file))).toEqual(['entry.mjs'])
})
