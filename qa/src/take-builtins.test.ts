/** The rewriting of a bundle: its imports of built-in modules, and its banner. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const { takeBuiltins } = (await import(resolve(import.meta.dirname, '../../scripts/take-builtins.mjs'))) as {
  takeBuiltins(folder: string): void
}
const { trimBanner } = (await import(resolve(import.meta.dirname, '../../scripts/trim-banner.mjs'))) as {
  trimBanner(folder: string, banner: string): void
}

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-builtins-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

async function taken(text: string): Promise<{ readonly text: string; readonly module: Record<string, unknown> }> {
  const file = join(folder, 'chunk.mjs')
  writeFileSync(file, text)
  takeBuiltins(folder)
  return { text: readFileSync(file, 'utf8'), module: await import(pathToFileURL(file).href) }
}

test('functions of a late module work, and nothing looks the module up before the first call', async () => {
  const { text, module } = await taken(
    'import{createHash as h,randomUUID}from"node:crypto";import{randomBytes as b}from"node:crypto";' +
      'export const value=()=>h("sha256").update("a").digest("hex").slice(0,4)+randomUUID().length+b(3).length;',
  )
  expect((module.value as () => string)()).toBe('ca97363')
  expect(text).not.toContain('import{')
  expect(text).not.toMatch(/=process\.getBuiltinModule\("node:crypto"\);/)
})

test('classes, whole modules and other modules are bound at once', async () => {
  const { text, module } = await taken(
    'import{BlockList as L,isIP}from"node:net";import*as all from"node:crypto";import{join}from"node:path";' +
      'export const value=[new L() instanceof L,isIP("::1"),typeof all.hash,join("a","b")];',
  )
  expect(module.value).toEqual([true, 6, 'function', 'a/b'])
  expect(text).toContain('{BlockList:L,isIP}=process.getBuiltinModule("node:net")')
})

test('only files that use a variable of the banner keep it', () => {
  const banner = 'const require=1,__filename=2,__dirname=3;'
  const files = {
    'plain.mjs': 'export const createRequire=4;',
    'asks.mjs': 'export const value=typeof require<"u"?require:0;',
    'folder.mjs': 'export const value=[__dirname];',
    'data.json': '{}',
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), name.endsWith('.mjs') ? `${banner}\n${text}` : text)
  trimBanner(folder, banner)
  const kept = Object.keys(files).filter((name) => readFileSync(join(folder, name), 'utf8').startsWith(banner))
  expect(kept).toEqual(['asks.mjs', 'folder.mjs'])
  expect(readFileSync(join(folder, 'plain.mjs'), 'utf8')).toBe(files['plain.mjs'])
})
