import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compileCacheFolder } from '@sluice/cli/compile-cache'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

const uid = process.geteuid?.()
const OTHER_UID = 12_345
let home: string
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-home-')))
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const folderOf = (env: Record<string, string> = {}) => compileCacheFolder({ env, home, uid })

describe.skipIf(uid === undefined)('the compile cache', () => {
  test('is in the home folder of the caller, with mode 0700', () => {
    const folder = folderOf()
    expect(folder).toBe(join(home, '.cache/sluice/compiled'))
    expect(statSync(folder ?? '').mode & 0o777).toBe(0o700)
    expect(folderOf()).toBe(folder)
  })

  test('follows an absolute XDG_CACHE_HOME', () => {
    expect(folderOf({ XDG_CACHE_HOME: join(home, 'xdg') })).toBe(join(home, 'xdg/sluice/compiled'))
    expect(folderOf({ XDG_CACHE_HOME: 'relative' })).toBe(join(home, '.cache/sluice/compiled'))
  })

  test.each(['', '.cache', '.cache/sluice', '.cache/sluice/compiled'])('is not used if others can write to ~/%s', (part) => {
    folderOf()
    chmodSync(join(home, part), 0o770)
    expect(folderOf()).toBeUndefined()
    chmodSync(join(home, part), 0o707)
    expect(folderOf()).toBeUndefined()
  })

  test('is not used in a world-writable folder, even with the sticky bit', () => {
    folderOf()
    chmodSync(join(home, '.cache/sluice/compiled'), 0o1777)
    expect(folderOf()).toBeUndefined()
  })

  test('is not created in a folder that others can write to', () => {
    chmodSync(home, 0o777)
    expect(folderOf()).toBeUndefined()
    expect(existsSync(join(home, '.cache'))).toBe(false)
  })

  test('is not used through a symbolic link to a folder that others can write to', () => {
    const target = join(home, 'open')
    mkdirSync(target)
    chmodSync(target, 0o777)
    symlinkSync(target, join(home, '.cache'))
    expect(folderOf()).toBeUndefined()
  })

  test.skipIf(uid !== 0)('is not used in a folder of another user', () => {
    folderOf()
    chownSync(join(home, '.cache/sluice'), OTHER_UID, OTHER_UID)
    expect(folderOf()).toBeUndefined()
  })

  test('is not used without a home folder', () => {
    expect(compileCacheFolder({ env: {}, home: '', uid })).toBeUndefined()
  })
})
