import { mkdir, realpath, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { checkPlace } from './check-place.ts'
import { newFolder } from './testing/new-plugin.ts'

let base: string
beforeEach(async () => {
  base = await realpath(await newFolder())
  for (const folder of ['data/workspace', 'data/plugins', 'project']) await mkdir(join(base, folder), { recursive: true })
  await symlink(join(base, 'project'), join(base, 'link'))
})
afterEach(() => rm(base, { recursive: true, force: true }))

const check = (plugins: string, workspace: string) => checkPlace(join(base, plugins), join(base, workspace), join(base, 'data'))

describe('checkPlace', () => {
  test.each([
    ['a folder inside it', 'data/workspace/plugins', 'data/workspace'],
    ['a folder inside it through a link', 'link/plugins', 'project'],
    ['the workspace itself', 'project', 'project'],
  ])('refuses a plugin folder in the workspace: %s', async (_place, plugins, workspace) => {
    await expect(check(plugins, workspace)).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('plugins_dir'),
    })
  })

  test.each([
    ['the default folders', 'data/plugins', 'data/workspace'],
    ['a workspace around the data directory', 'data/plugins', '.'],
    ['a folder whose name begins with that of the workspace', 'project-2', 'project'],
  ])('accepts a plugin folder elsewhere: %s', async (_place, plugins, workspace) => {
    await expect(check(plugins, workspace)).resolves.toBeUndefined()
  })
})
