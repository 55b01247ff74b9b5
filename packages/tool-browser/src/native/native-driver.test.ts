import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { createWorld } from '../testing/world.ts'

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

describe('a build without the backend', () => {
  test('says how to get it, for each action and in doctor', async () => {
    const world = createWorld({ config: { backend: 'native', allowed_domains: ['*'] }, host: { services: {} } })
    const refused = { code: 'not_compiled', message: expect.stringContaining('browser-native'), fields: { feature: 'tool-browser-native' } }
    for (const input of [{ action: 'open', url: 'http://site.test/' }, { action: 'snapshot' }])
      await expect(world.run(input)).rejects.toMatchObject(refused)
    expect(await world.check()).toMatchObject([
      { status: 'fail', detail: expect.stringContaining('no backend'), fix: expect.stringContaining('--features') },
    ])
    await world.close()
  })
})

describe('NativeDriver', () => {
  test('refuses a seventeenth client while sixteen are busy', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'sluice-browser-'))
    folders.push(dataDir)
    const program = join(dataDir, 'chromium')
    await writeFile(program, '#!/bin/sh\nexit 1\n')
    await chmod(program, 0o755)
    const world = createWorld({
      config: { backend: 'native', native_chrome_path: program, allowed_domains: ['*'] },
      names: { 'site.test': ['192.0.2.1'] },
      exempt: ['site.test'],
      host: { dataDir },
    })
    const open = (client: string) => world.run({ action: 'open', url: 'http://site.test/' }, { client })
    const busy = Array.from({ length: 16 }, (_, at) => open(`client-${at}`).catch((error: Error) => error.message))
    await expect(open('one more')).rejects.toMatchObject({ code: 'unavailable', message: 'All browser contexts are busy' })
    for (const message of await Promise.all(busy)) expect(message).toContain('does not start')
    await world.close()
  })
})
