import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkConfigPlace } from './check-config.ts'
import { checkWorkspace } from './check-workspace.ts'

let base = ''
let dataDir = ''
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'doctor-workspace-')))
  dataDir = join(base, 'home/.sluice')
  mkdirSync(dataDir, { recursive: true })
})
afterEach(() => rmSync(base, { recursive: true }))

const configIn = (folder: string) => join(folder, 'config.toml')

describe('checkWorkspace', () => {
  test('accepts a workspace inside the data directory or next to it', async () => {
    const inside = join(dataDir, 'workspace')
    expect(await checkWorkspace(inside, dataDir, configIn(dataDir))).toMatchObject({
      status: 'ok',
      detail: `${inside}, made at the first write`,
    })
    mkdirSync(inside)
    mkdirSync(`${dataDir}-more`)
    for (const root of [inside, `${dataDir}-more`])
      expect(await checkWorkspace(root, dataDir, configIn(dataDir))).toMatchObject({ status: 'ok', detail: root })
  })

  test('fails a workspace that contains the data directory, also through a link', async () => {
    symlinkSync(join(base, 'home'), join(base, 'link'))
    for (const root of [dataDir, join(base, 'home'), base, '/', join(base, 'link')])
      expect(await checkWorkspace(root, dataDir, configIn(dataDir))).toMatchObject({
        check: 'workspace',
        status: 'fail',
        detail: expect.stringContaining('keys'),
      })
  })

  test('fails a workspace that contains the configuration', async () => {
    const root = join(base, 'workspace')
    mkdirSync(root)
    const configFile = join(root, 'sluice.toml')
    expect(await checkWorkspace(root, dataDir, configFile)).toMatchObject({ status: 'ok' })
    writeFileSync(configFile, '')
    expect(await checkWorkspace(root, dataDir, configFile)).toMatchObject({ status: 'fail', detail: expect.stringContaining('commands') })
  })
})

test('checkConfigPlace warns of a configuration in a folder of programs', async () => {
  const programs = [base]
  const configFile = join(base, 'sluice.toml')
  expect(await checkConfigPlace(dataDir, configFile, programs)).toEqual([])
  for (const path of [configFile, join(dataDir, 'config.toml')]) writeFileSync(path, '')
  expect(await checkConfigPlace(dataDir, configFile, programs)).toMatchObject([{ check: 'config', status: 'warn' }])
  expect(await checkConfigPlace(dataDir, configIn(dataDir), programs)).toEqual([])
  expect(await checkConfigPlace(dataDir, configFile, [join(base, 'home')])).toEqual([])
})
