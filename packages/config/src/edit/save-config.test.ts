import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { saveConfig } from './save-config.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'save-config-'))
  file = join(folder, 'config.toml')
})
afterEach(() => rmSync(folder, { recursive: true }))

const modeOf = (path: string) => statSync(path).mode & 0o777
const refused = (code: string, message: string) => expect.objectContaining({ code, message: expect.stringContaining(message) })

test('creates a new file and its folder readable only by the owner', async () => {
  const deep = join(folder, 'data', 'config.toml')
  await saveConfig({ file: deep, text: 'a = 1\n', expected: undefined })
  expect(readFileSync(deep, 'utf8')).toBe('a = 1\n')
  expect(modeOf(deep)).toBe(0o600)
  expect(modeOf(join(folder, 'data'))).toBe(0o700)
})

test('keeps its lock readable only by the owner, also one that an earlier release made', async () => {
  await saveConfig({ file, text: 'a = 1\n', expected: undefined })
  expect(modeOf(`${file}.lock`)).toBe(0o600)
  chmodSync(`${file}.lock`, 0o644)
  await saveConfig({ file, text: 'a = 2\n', expected: 'a = 1\n' })
  expect(modeOf(`${file}.lock`)).toBe(0o600)
})

test('keeps the lock while this process saves the file twice at the same time', async () => {
  const both = await Promise.allSettled(['a', 'b'].map((key) => saveConfig({ file, text: `${key} = 1\n`, expected: undefined })))
  expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
})

test('keeps the mode of a file and leaves no other file behind', async () => {
  writeFileSync(file, 'a = 1\n', { mode: 0o640 })
  await saveConfig({ file, text: 'a = 2\n', expected: 'a = 1\n' })
  expect(readFileSync(file, 'utf8')).toBe('a = 2\n')
  expect(modeOf(file)).toBe(0o640)
  expect(readdirSync(folder).toSorted()).toEqual(['config.toml', 'config.toml.lock'])
})

test('keeps a link and replaces its target', async () => {
  const target = join(folder, 'real.toml')
  const middle = join(folder, 'middle.toml')
  writeFileSync(target, 'a = 1\n')
  symlinkSync('real.toml', middle)
  symlinkSync(middle, file)
  await saveConfig({ file, text: 'a = 2\n', expected: 'a = 1\n' })
  expect(readlinkSync(file)).toBe(middle)
  expect(readFileSync(target, 'utf8')).toBe('a = 2\n')
  expect(lstatSync(target).isSymbolicLink()).toBe(false)
})

test('follows a link without a target and refuses circular links', async () => {
  symlinkSync('later.toml', file)
  await saveConfig({ file, text: 'a = 1\n', expected: undefined })
  expect(readFileSync(join(folder, 'later.toml'), 'utf8')).toBe('a = 1\n')
  const circle = join(folder, 'circle.toml')
  symlinkSync('circle.toml', circle)
  await expect(saveConfig({ file: circle, text: '', expected: undefined })).rejects.toEqual(refused('unavailable', 'in circles'))
})

test.each([
  ['changed', 'a = 1\n', 'a = 0\n'],
  ['deleted', undefined, 'a = 0\n'],
  ['created', 'a = 1\n', undefined],
])('does not overwrite a file that was %s since it was read', async (_, now, expected) => {
  if (now !== undefined) writeFileSync(file, now)
  await expect(saveConfig({ file, text: 'a = 2\n', expected })).rejects.toEqual(refused('conflict', 'has changed since it was read'))
  expect(readdirSync(folder).includes('config.toml') ? readFileSync(file, 'utf8') : undefined).toBe(now)
})

test('throws unavailable and leaves nothing behind when it cannot write', async () => {
  mkdirSync(file)
  await expect(saveConfig({ file, text: 'a = 2\n', expected: undefined })).rejects.toEqual(refused('unavailable', 'cannot be saved'))
  await expect(saveConfig({ file: join(file, 'x', '\0'), text: '', expected: undefined })).rejects.toEqual(refused('unavailable', ''))
  expect(readdirSync(folder).filter((name) => name.startsWith('.'))).toEqual([])
})

test('waits for a save in progress', async () => {
  writeFileSync(file, 'a = 1\n')
  const other = new DatabaseSync(`${file}.lock`)
  other.exec('BEGIN EXCLUSIVE')
  const order: string[] = []
  const saving = saveConfig({ file, text: 'a = 2\n', expected: 'a = 1\n' }).then(() => order.push('saved'))
  // A complete save of another file takes as long as this one would take without waiting.
  const aside = join(folder, 'aside.toml')
  for (let turn = 0; turn < 3; turn++) await saveConfig({ file: aside, text: `${turn}`, expected: turn > 0 ? `${turn - 1}` : undefined })
  order.push('released')
  other.close()
  await saving
  expect(order).toEqual(['released', 'saved'])
})

/** Adds lines with one save each; a process that lost the race reads the file again. */
const WRITER = `
import { readFileSync } from 'node:fs'
const [module, file, name, count] = process.argv.slice(1)
const { saveConfig } = await import(module)
for (let line = 0; line < Number(count); ) {
  const before = readFileSync(file, 'utf8')
  try {
    await saveConfig({ file, text: before + '# ' + name + line + '\\n', expected: before })
    line += 1
  } catch (error) {
    if (error.code !== 'conflict') throw error
  }
}`

test('loses nothing when two processes save at the same time', async () => {
  writeFileSync(file, '')
  const writers = ['a', 'b'].map((name) =>
    spawn(process.execPath, ['--input-type=module', '-e', WRITER, import.meta.resolve('./save-config.ts'), file, name, '20'], {
      stdio: 'inherit',
    }),
  )
  const codes = await Promise.all(writers.map(async (writer) => (await once(writer, 'exit'))[0] as number))
  expect(codes).toEqual([0, 0])
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  const wanted = ['a', 'b'].flatMap((name) => Array.from({ length: 20 }, (_, line) => `# ${name}${line}`))
  expect(lines.toSorted()).toEqual(wanted.toSorted())
})

test('releases the lock of a killed process', async () => {
  writeFileSync(file, 'a = 1\n')
  const script = `
import { DatabaseSync } from 'node:sqlite'
const database = new DatabaseSync(process.argv[1])
database.exec('BEGIN EXCLUSIVE')
setInterval(() => database.isOpen, 1000)
console.log('locked')`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script, `${file}.lock`], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(holder.stdout, 'data')
  holder.kill('SIGKILL')
  await once(holder, 'exit')
  await saveConfig({ file, text: 'a = 2\n', expected: 'a = 1\n' })
  expect(readFileSync(file, 'utf8')).toBe('a = 2\n')
})
