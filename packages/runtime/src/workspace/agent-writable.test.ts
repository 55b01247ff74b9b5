import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { canAgentWrite } from './agent-writable.ts'

let base: string
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'writable-')))
  for (const folder of ['data/workspace/sops', 'data/sops', 'project/sub', 'other']) mkdirSync(join(base, folder), { recursive: true })
})
afterEach(() => rmSync(base, { recursive: true }))

describe('canAgentWrite', () => {
  test.each([
    ['below the workspace', 'data/workspace', 'data/workspace/sops', true],
    ['below the workspace, not there yet', 'data/workspace', 'data/workspace/new/SOP.toml', true],
    ['the workspace itself', 'project', 'project', true],
    ['next to the workspace', 'data/workspace', 'data/sops', false],
    ['a name that only begins like the workspace', 'project', 'project-2/config.toml', false],
    ['in the data directory, which lies in the workspace', '.', 'data/sops', false],
    ['elsewhere in a workspace that holds the data directory', '.', 'other', true],
  ])('%s', (_what, workspace, path, expected) => {
    const places = { workspaces: [join(base, 'none'), join(base, workspace)], dataDir: join(base, 'data') }
    expect(canAgentWrite(join(base, path), places)).toBe(expected)
  })

  test('follows links into the workspace, and a link to the workspace itself', () => {
    symlinkSync(join(base, 'project/sub'), join(base, 'data/link'))
    symlinkSync(join(base, 'project'), join(base, 'alias'))
    const dataDir = join(base, 'data')
    expect(canAgentWrite(join(base, 'data/link/file'), { workspaces: [join(base, 'project')], dataDir })).toBe(true)
    expect(canAgentWrite(join(base, 'project/sub'), { workspaces: [join(base, 'alias')], dataDir })).toBe(true)
  })
})
