import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkConfigPlace, checkWorkspace } from './check-workspace.ts'

let base = ''
let dataDir = ''
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'doctor-workspace-')))
  dataDir = join(base, 'home/.sluice')
  mkdirSync(dataDir, { recursive: true })
})
afterEach(() => rmSync(base, { recursive: true }))

const inPlace = (configFile = join(dataDir, 'config.toml')) => ({ dataDir, configFile })

test('a workspace in the data directory or beside it is fine, there or not', async () => {
  const inside = join(dataDir, 'workspace')
  expect(await checkWorkspace(inside, inPlace())).toMatchObject({ status: 'ok', detail: `${inside}, made at the first write` })
  mkdirSync(inside)
  mkdirSync(`${dataDir}-more`)
  for (const root of [inside, `${dataDir}-more`])
    expect(await checkWorkspace(root, inPlace())).toMatchObject({ status: 'ok', detail: root })
})

test('a workspace that is or holds the data directory fails, by whatever path', async () => {
  symlinkSync(join(base, 'home'), join(base, 'link'))
  for (const root of [dataDir, join(base, 'home'), base, '/', join(base, 'link')])
    expect(await checkWorkspace(root, inPlace())).toMatchObject({
      check: 'workspace',
      status: 'fail',
      detail: expect.stringContaining('keys'),
    })
})

test('a workspace with the configuration in it fails: commands would say what commands may do', async () => {
  const root = join(base, 'workspace')
  mkdirSync(root)
  const configFile = join(root, 'sluice.toml')
  expect(await checkWorkspace(root, inPlace(configFile))).toMatchObject({ status: 'ok' })
  writeFileSync(configFile, '')
  expect(await checkWorkspace(root, inPlace(configFile))).toMatchObject({ status: 'fail', detail: expect.stringContaining('commands') })
})

test('a configuration beside programs is warned of: commands read what lies there', async () => {
  const programs = [base]
  const configFile = join(base, 'sluice.toml')
  expect(await checkConfigPlace(inPlace(configFile), programs)).toEqual([])
  for (const path of [configFile, join(dataDir, 'config.toml')]) writeFileSync(path, '')
  expect(await checkConfigPlace(inPlace(configFile), programs)).toMatchObject([{ check: 'config', status: 'warn' }])
  expect(await checkConfigPlace(inPlace(), programs)).toEqual([])
  expect(await checkConfigPlace(inPlace(configFile), [join(base, 'home')])).toEqual([])
})
