/** What hints tell a person to type. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { asTyped, programName } from './program-name.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-name-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function build(path: string): string {
  const dir = join(folder, path)
  mkdirSync(dir, { recursive: true })
  writeFileSync(join(dir, 'sluice'), '#!/bin/sh\n', { mode: 0o755 })
  return join(dir, 'sluice.mjs')
}

test('an installed program is called by its name', () => {
  const entry = build('bin')
  expect(programName(entry, `/nowhere:${join(folder, 'bin')}`)).toBe('sluice')
})

test('a build of a clone is called as a script of the clone', () => {
  const entry = build('clone/dist/full')
  mkdirSync(join(folder, 'clone/scripts'))
  writeFileSync(join(folder, 'clone/scripts/bootstrap.mjs'), '')
  expect(programName(entry, '/nowhere')).toBe('npm run -s sluice --')
})

test('an unpacked archive is called by its path', () => {
  expect(programName(build('archive'), '/nowhere')).toBe(join(folder, 'archive/sluice'))
  expect(programName(build('an archive'), '/nowhere')).toBe(`"${join(folder, 'an archive/sluice')}"`)
  expect(programName(join(folder, 'nothing/sluice.mjs'), '/nowhere')).toBe('sluice')
})

test('commands are replaced in quotes, at the begin of a text, and after a colon, a bracket or "see"', () => {
  const clone = 'npm run -s sluice --'
  const text = "see 'sluice config check', 'sluice --help' and 'sluice <command>'; sluice itself and 'sluice' stay"
  expect(asTyped(text, clone)).toBe(
    "see 'npm run -s sluice -- config check', 'npm run -s sluice -- --help' and 'npm run -s sluice -- <command>'; sluice itself and 'sluice' stay",
  )
  expect(asTyped(text, 'sluice')).toBe(text)
  expect(asTyped('run `sluice setup` to choose one', clone)).toBe('run `npm run -s sluice -- setup` to choose one')
  expect(asTyped('read it, then type:\n  sluice setup', clone)).toBe('read it, then type:\n  npm run -s sluice -- setup')
  expect(asTyped('  sluice doctor    what is missing', clone)).toBe('  npm run -s sluice -- doctor    what is missing')
  expect(asTyped("the message is empty: sluice agent -m 'hello'", clone)).toBe(
    "the message is empty: npm run -s sluice -- agent -m 'hello'",
  )
  expect(asTyped('accept it first (sluice sop waiting); see sluice doctor', clone)).toBe(
    'accept it first (npm run -s sluice -- sop waiting); see npm run -s sluice -- doctor',
  )
  for (const other of ['hello from sluice webhook send', '/opt/sluice doctor', 'the folder of sluice is full'])
    expect(asTyped(other, clone)).toBe(other)
})
