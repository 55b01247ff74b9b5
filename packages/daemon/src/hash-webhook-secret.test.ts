import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { defineFeature, sha256Hex } from '@sluice/sdk'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Daemon, startDaemon } from './daemon.ts'

let folder: string
let daemon: Daemon | undefined

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hash-'))
})
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  rmSync(folder, { recursive: true, force: true })
})

const offline = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({ provider: 'offline' }) as never }] }),
})

async function start(configFile: string) {
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  writeFileSync(configFile, '[gateway]\n# theirs\nwebhook_secret = "shh"\n')
  daemon = await startDaemon({
    features: [offline],
    dataDir,
    configFile,
    env: { SVC_LOG_LEVEL: 'error' },
    profile: 'test',
    version: '0',
    listens: false,
  })
}

test('a plain webhook secret in the data directory is replaced by its hash at the start', async () => {
  const file = join(folder, 'data', 'config.toml')
  await start(file)
  await expect.poll(() => readFileSync(file, 'utf8')).toBe(`[gateway]\n# theirs\nwebhook_secret_sha256 = "${sha256Hex('shh')}"\n`)
})

test('a file outside of the data directory is left as it is', async () => {
  const file = join(folder, 'config.toml')
  await start(file)
  await daemon?.stop()
  expect(readFileSync(file, 'utf8')).toContain('webhook_secret = "shh"')
})
