import { execFile } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { promisify } from 'node:util'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { watchConfig } from './watch-config.ts'

let folder: string
let file: string
let clock: TestClock
let stop: AbortController
let seen: string[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watch-config-'))
  file = join(folder, 'config.toml')
  clock = testClock()
  stop = new AbortController()
  seen = []
})
afterEach(() => {
  stop.abort()
  rmSync(folder, { recursive: true })
})

/** Lets the clock run, and real I/O with it, until something holds. */
async function until(holds: () => boolean): Promise<void> {
  for (let turns = 0; turns < 400 && !holds(); turns++) {
    await clock.advance(50)
    await setTimeout(1)
  }
  expect(holds()).toBe(true)
}

/** Long enough for a change to be noticed by looking, had there been one. */
async function aWhile(): Promise<void> {
  const endMs = clock.nowMs() + 5000
  await until(() => clock.nowMs() >= endMs)
}

async function start(text?: string): Promise<void> {
  watchConfig({ file, clock, signal: stop.signal, onChange: (found) => void seen.push(found), ...(text === undefined ? {} : { text }) })
  await until(() => clock.sleeping > 0)
}

const changed = (...texts: string[]) => until(() => seen.length >= texts.length).then(() => expect(seen).toEqual(texts))

test('a write in place is noticed', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  writeFileSync(file, 'a = 2\n')
  await changed('a = 2\n')
  appendFileSync(file, 'b = 1\n')
  await changed('a = 2\n', 'a = 2\nb = 1\n')
})

test('a file that takes the place of the old one is noticed', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  for (const text of ['a = 2\n', 'a = 3\n']) {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
    await until(() => seen.includes(text))
  }
  expect(seen).toEqual(['a = 2\n', 'a = 3\n'])
})

test('creation and deletion are noticed', async () => {
  await start()
  writeFileSync(file, 'a = 1\n')
  await changed('a = 1\n')
  rmSync(file)
  await changed('a = 1\n', '')
  writeFileSync(file, 'a = 1\n')
  await changed('a = 1\n', '', 'a = 1\n')
})

test('a swap of the link behind a mounted file is noticed', async () => {
  for (const version of ['1', '2']) {
    mkdirSync(join(folder, `..${version}`))
    writeFileSync(join(folder, `..${version}`, 'config.toml'), `a = ${version}\n`)
  }
  symlinkSync('..1', join(folder, '..data'))
  symlinkSync(join('..data', 'config.toml'), file)
  await start()
  symlinkSync('..2', join(folder, '..data.new'))
  renameSync(join(folder, '..data.new'), join(folder, '..data'))
  await changed('a = 2\n')
})

test('a change far from the folder is noticed by looking', async () => {
  const elsewhere = mkdtempSync(join(tmpdir(), 'watch-config-'))
  try {
    writeFileSync(join(elsewhere, 'real.toml'), 'a = 1\n')
    symlinkSync(join(elsewhere, 'real.toml'), file)
    await start()
    writeFileSync(join(elsewhere, 'real.toml'), 'a = 23\n')
    await changed('a = 23\n')
  } finally {
    rmSync(elsewhere, { recursive: true })
  }
})

test('a folder that is made later is watched then', async () => {
  file = join(folder, 'later', 'config.toml')
  await start()
  mkdirSync(join(folder, 'later'))
  writeFileSync(file, 'a = 1\n')
  await changed('a = 1\n')
})

test('the same text is no change: neither touched nor written again', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  utimesSync(file, 1, 1)
  await aWhile()
  writeFileSync(file, 'a = 1\n')
  await aWhile()
  expect(seen).toEqual([])
})

test('several writes in a row are one change', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  writeFileSync(file, '')
  for (let part = 0; part < 20; part++) appendFileSync(file, `a${part} = 1\n`)
  await until(() => seen.length > 0)
  await aWhile()
  expect(seen).toHaveLength(1)
  expect(seen[0]).toContain('a19 = 1\n')
})

test('what changed between loading and watching is noticed at once', async () => {
  writeFileSync(file, 'a = 2\n')
  await start('a = 1\n')
  await changed('a = 2\n')
})

test('a file that cannot be read counts as unchanged', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  rmSync(file)
  mkdirSync(file)
  await aWhile()
  expect(seen).toEqual([])
})

test('nothing is told after the watch has ended', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  stop.abort()
  writeFileSync(file, 'a = 2\n')
  await aWhile()
  expect(seen).toEqual([])
  expect(clock.sleeping).toBe(0)
})

test('a watch does not keep the process alive', async () => {
  writeFileSync(file, 'a = 1\n')
  const script = `
    const { watchConfig } = await import(process.argv[1])
    watchConfig({ file: process.argv[2], signal: new AbortController().signal, onChange() {} })`
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, import.meta.resolve('./watch-config.ts'), file], {
    timeout: 10_000,
  })
})
