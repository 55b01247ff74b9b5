import { mkdir, realpath, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { memoryWorkspace } from '@sluice/testkit/memory-workspace'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { checkPlace } from './check-place.ts'
import { newFolder } from './testing/new-plugin.ts'

let base: string
beforeEach(async () => {
  base = await realpath(await newFolder())
  for (const folder of ['data/workspace', 'data/plugins', 'project']) await mkdir(join(base, folder), { recursive: true })
  await symlink(join(base, 'project'), join(base, 'link'))
})
afterEach(() => rm(base, { recursive: true, force: true }))

const check = (plugins: string, workspace: string) =>
  checkPlace(join(base, plugins), { workspace: memoryWorkspace({}, join(base, workspace)), dataDir: join(base, 'data') })

test.each([
  ['below it', 'data/workspace/plugins', 'data/workspace'],
  ['below it, by a link', 'link/plugins', 'project'],
  ['it itself', 'project', 'project'],
])('plugins in the workspace are refused: %s', async (_what, plugins, workspace) => {
  await expect(check(plugins, workspace)).rejects.toMatchObject({ code: 'config_invalid', message: expect.stringContaining('plugins_dir') })
})

test.each([
  ['the usual places', 'data/plugins', 'data/workspace'],
  ['a workspace around the data directory', 'data/plugins', '.'],
  ['a name that only begins like the workspace', 'project-2', 'project'],
])('plugins elsewhere are loaded: %s', async (_what, plugins, workspace) => {
  await expect(check(plugins, workspace)).resolves.toBeUndefined()
})
