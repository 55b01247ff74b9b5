import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineFeature } from '@sluice/sdk'
import { lockDataDirAfterCommands } from '@sluice/store'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startDaemon } from './daemon.ts'
import { openInProcess } from './in-process.ts'

let dataDir: string
let built: number
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'in-process-'))
  built = 0
})
afterEach(() => {
  rmSync(dataDir, { recursive: true, force: true })
})

const options = (only: 'store' | 'config') => {
  const feature = defineFeature({
    id: 'x-connected',
    build: () => {
      built += 1
      return { providers: [{ kinds: ['offline'], load: async () => ({ provider: 'offline' }) as never }] }
    },
  })
  const configFile = join(dataDir, 'config.toml')
  return { features: [feature], dataDir, configFile, env: { SVC_LOG_LEVEL: 'error' }, profile: 'test', version: '0', only } as const
}

async function ask(path: string, only: 'store' | 'config' = 'store') {
  const application = await openInProcess(options(only))
  if (!application) throw new Error('a daemon holds the lock')
  const answer = await application.serve({ method: 'GET', path })
  await application.close()
  return answer
}

test('serves the routes to the operator, builds no feature, and needs no valid configuration', async () => {
  writeFileSync(join(dataDir, 'config.toml'), '[gateway]\nport = "no number"\n')
  expect(await ask('/api/status')).toMatchObject({ url: null, queues: { messages_pending: 0 } })
  expect(built).toBe(0)
})

test('needs a valid configuration if the command does', async () => {
  writeFileSync(join(dataDir, 'config.toml'), '[gateway]\nport = "no number"\n')
  await expect(ask('/api/status', 'config')).rejects.toMatchObject({ code: 'config_invalid' })
  writeFileSync(join(dataDir, 'config.toml'), '[gateway]\nrequire_pairing = false\n')
  expect(await ask('/api/status', 'config')).toMatchObject({ require_pairing: false, models: [] })
})

test('keeps a daemon out until it closes, and other commands not', async () => {
  const [first, second] = await Promise.all([openInProcess(options('store')), openInProcess(options('store'))])
  const start = { ...options('store'), only: undefined, port: 0 }
  await first?.close()
  // A daemon that starts calls this, and gives commands ten seconds to end.
  await expect(lockDataDirAfterCommands(dataDir, 0)).rejects.toMatchObject({ code: 'conflict' })
  await second?.close()
  await (await startDaemon(start)).stop()
})
