import { execFile } from 'node:child_process'
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { watchFileOperations } from '@sluice/testkit/files-idle'
import * as testkit from '@sluice/testkit/until'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { LOSS_HOLD_MS, watchConfig } from './watch-config.ts'

let folder: string
let file: string
let clock: TestClock
let stop: AbortController
let seen: string[]
let losses: string[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'watch-config-'))
  file = join(folder, 'config.toml')
  clock = testClock()
  stop = new AbortController()
  seen = []
  losses = []
})
afterEach(() => {
  stop.abort()
  rmSync(folder, { recursive: true })
})

const filesIdle = watchFileOperations()

/** Advances the clock until a condition holds. Reading a file takes no time of this clock. */
const until = (holds: () => boolean): Promise<void> => testkit.until(holds, () => clock.advance(50).then(filesIdle))

/** Long enough for polling to notice a change. */
async function aWhile(): Promise<void> {
  const endMs = clock.nowMs() + 5000
  await until(() => clock.nowMs() >= endMs)
}

async function start(text?: string): Promise<void> {
  watchConfig({
    file,
    clock,
    signal: stop.signal,
    onChange: (found) => void seen.push(found),
    onLoss: (lost) => void losses.push(lost),
    ...(text === undefined ? {} : { text }),
  })
  await until(() => clock.sleeping > 0)
}

const changed = (...texts: string[]) => until(() => seen.length >= texts.length).then(() => expect(seen).toEqual(texts))

test('notices a write in place', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  writeFileSync(file, 'a = 2\n')
  await changed('a = 2\n')
  appendFileSync(file, 'b = 1\n')
  await changed('a = 2\n', 'a = 2\nb = 1\n')
})

test('notices a file that replaces the old one', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  for (const text of ['a = 2\n', 'a = 3\n']) {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
    await until(() => seen.includes(text))
  }
  expect(seen).toEqual(['a = 2\n', 'a = 3\n'])
})

test('notices creation and deletion', async () => {
  await start()
  writeFileSync(file, 'a = 1\n')
  await changed('a = 1\n')
  rmSync(file)
  await changed('a = 1\n', '')
  writeFileSync(file, 'a = 1\n')
  await changed('a = 1\n', '', 'a = 1\n')
})

test('notices a changed link behind a mounted file', async () => {
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

test('notices a change outside of the folder by polling', async () => {
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

test('watches a folder that is created later', async () => {
  file = join(folder, 'later', 'config.toml')
  await start()
  mkdirSync(join(folder, 'later'))
  writeFileSync(file, 'a = 1\n')
  await changed('a = 1\n')
})

test('ignores a file that is touched or written with the same text', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  utimesSync(file, 1, 1)
  await aWhile()
  writeFileSync(file, 'a = 1\n')
  await aWhile()
  expect(seen).toEqual([])
})

test('reports several writes in a row as one change', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  writeFileSync(file, '')
  for (let part = 0; part < 20; part++) appendFileSync(file, `a${part} = 1\n`)
  await until(() => seen.length > 0)
  await aWhile()
  expect(seen).toHaveLength(1)
  expect(seen[0]).toContain('a19 = 1\n')
})

const WHOLE = '[gateway]\nport = 1\n\n[channels_config.chatapp]\nverify_token = "v"\nallowed_numbers = ["*"]\n'

test.each([
  ['emptied', () => writeFileSync(file, ''), 'all of its text'],
  ['deleted', () => rmSync(file), 'all of its text'],
  ['cut between sections', () => writeFileSync(file, '[gateway]\nport = 2\n'), '[channels_config.chatapp]'],
  ['cut inside its last section', () => writeFileSync(file, WHOLE.slice(0, WHOLE.indexOf('allowed'))), 'its end'],
])('keeps the text in force while the file is %s for a moment', async (_, spoil, lost) => {
  writeFileSync(file, WHOLE)
  await start()
  spoil()
  await until(() => losses.length > 0)
  const spoiledAtMs = clock.nowMs()
  await until(() => clock.nowMs() >= spoiledAtMs + LOSS_HOLD_MS / 2)
  writeFileSync(file, WHOLE)
  await until(() => clock.nowMs() >= spoiledAtMs + 3 * LOSS_HOLD_MS)
  expect(seen).toEqual([])
  expect(losses).toEqual([lost])
})

test('applies a file without one of its sections after the hold time', async () => {
  writeFileSync(file, WHOLE)
  await start()
  writeFileSync(file, '[gateway]\nport = 2\n')
  await until(() => losses.length > 0)
  const lostAtMs = clock.nowMs()
  await changed('[gateway]\nport = 2\n')
  expect(clock.nowMs() - lostAtMs).toBeGreaterThanOrEqual(LOSS_HOLD_MS)
})

test('applies a rewrite that keeps every section at once', async () => {
  writeFileSync(file, WHOLE)
  await start()
  writeFileSync(file, WHOLE.replace('port = 1', '').replace('["*"]', '[]'))
  await until(() => seen.length > 0)
  expect(losses).toEqual([])
})

test('notices a change between loading and watching at once', async () => {
  writeFileSync(file, 'a = 2\n')
  await start('a = 1\n')
  await changed('a = 2\n')
})

test('treats an unreadable file as unchanged', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  rmSync(file)
  mkdirSync(file)
  await aWhile()
  expect(seen).toEqual([])
})

test('reports nothing after the watch has ended', async () => {
  writeFileSync(file, 'a = 1\n')
  await start()
  stop.abort()
  writeFileSync(file, 'a = 2\n')
  await aWhile()
  expect(seen).toEqual([])
  expect(clock.sleeping).toBe(0)
})

test('does not keep the process alive', async () => {
  writeFileSync(file, 'a = 1\n')
  const script = `
    const { watchConfig } = await import(process.argv[1])
    watchConfig({ file: process.argv[2], signal: new AbortController().signal, onChange() {} })`
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script, import.meta.resolve('./watch-config.ts'), file], {
    timeout: 30_000,
  })
})
