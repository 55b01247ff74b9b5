import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockDataDir, lockDataDirAfterCommands, shareDataDir } from './lock-data-dir.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'lock-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true })
})

const conflict = expect.objectContaining({ code: 'conflict', message: expect.stringContaining('Another daemon is running') })

test('a second daemon is refused until the first releases the lock', () => {
  const first = lockDataDir(folder)
  expect(() => lockDataDir(folder)).toThrow(conflict)
  expect(() => lockDataDir(folder)).toThrow(conflict)
  first.release()
  first.release()
  lockDataDir(folder).release()
})

test('commands share the lock, and keep daemons out', () => {
  const [first, second] = [shareDataDir(folder), shareDataDir(folder)]
  expect(() => lockDataDir(folder)).toThrow(conflict)
  first?.release()
  expect(() => lockDataDir(folder)).toThrow(conflict)
  second?.release()
  const daemon = lockDataDir(folder)
  expect(shareDataDir(folder)).toBeUndefined()
  daemon.release()
})

test('a daemon that starts waits for commands, and not for another daemon', async () => {
  const command = shareDataDir(folder)
  const starting = lockDataDirAfterCommands(folder)
  await setImmediate()
  command?.release()
  const daemon = await starting
  await expect(lockDataDirAfterCommands(folder)).rejects.toEqual(conflict)
  daemon.release()
  const longCommand = shareDataDir(folder)
  await expect(lockDataDirAfterCommands(folder, 0)).rejects.toEqual(conflict)
  longCommand?.release()
})

test('a new directory is private, and the lock file stays empty', () => {
  const dir = join(folder, 'data')
  const lock = lockDataDir(dir)
  expect(statSync(dir).mode & 0o777).toBe(0o700)
  expect(statSync(join(dir, 'daemon.lock'))).toMatchObject({ size: 0, mode: 0o100600 })
  lock.release()
})

test('two directories have two locks', () => {
  const locks = ['a', 'b'].map((name) => lockDataDir(join(folder, name)))
  for (const lock of locks) lock.release()
})

test('an unusable directory is reported as unavailable', () => {
  writeFileSync(join(folder, 'file'), '')
  const reason = expect.stringMatching(/cannot be locked: \S/)
  expect(() => lockDataDir(join(folder, 'file'))).toThrow(expect.objectContaining({ code: 'unavailable', message: reason }))
})

test('the lock ends with its process, even by SIGKILL', async () => {
  const script = join(import.meta.dirname, '../../fixtures/hold-lock.ts')
  const child = spawn(process.execPath, ['--expose-gc', script, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exit = once(child, 'exit')
  await once(child.stdout, 'data')
  expect(() => lockDataDir(folder)).toThrow(conflict)
  child.kill('SIGKILL')
  await exit
  lockDataDir(folder).release()
}, 20_000)
