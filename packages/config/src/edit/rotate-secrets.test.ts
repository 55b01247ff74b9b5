import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, secretStore } from '@sluice/store'
import { openSecretBox, secretKeyIds } from '@sluice/store/secret-box'
import { beginRotation, reencryptRows } from '@sluice/store/secret-rotation'
import { testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { rotateSecrets } from './rotate-secrets.ts'

const TIMEOUT = { timeout: 60_000 }
const PATHS = ['provider.api_key', 'gateway.webhook_secret', 'mcp.servers[].env.TOKEN']

let dataDir: string
let configFile: string
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'rotate-'))
  configFile = join(dataDir, 'config.toml')
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

const rotate = () => rotateSecrets({ dataDir, configFile, settleMs: 0 })
const open = () => openStore({ file: join(dataDir, 'sluice.db'), clock: testClock(), log: testHost().log })

/** Writes secrets with the first key. Returns the store, as a running daemon has it. */
async function install() {
  const box = openSecretBox(dataDir)
  const [key, webhook] = [box.encrypt('key', 'provider.api_key'), box.encrypt('hook', 'gateway.webhook_secret')]
  writeFileSync(configFile, `# kept\n[provider]\napi_key = "${key}" # here\n\n[gateway]\nwebhook_secret = '${webhook}'\nport = 1\n`)
  const store = open()
  const secrets = (feature: string) => secretStore(box, store.keyValue(`secret:${feature}`), `secrets.${feature}`)
  for (let number = 0; number < 250; number++) await secrets('webauthn').set(`passkey ${number} ☃`, `value ${number}`)
  await secrets('mcp').set('token', 'mcp token')
  return { box, store, secrets }
}

async function expectAll({ box, secrets }: Awaited<ReturnType<typeof install>>, keyId: string): Promise<void> {
  const text = readFileSync(configFile, 'utf8')
  const [, key = '', webhook = ''] =
    /^# kept\n\[provider\]\napi_key = "(.*)" # here\n\n\[gateway\]\nwebhook_secret = '(.*)'\nport = 1\n$/.exec(text) ?? []
  for (const one of [box, openSecretBox(dataDir)]) {
    expect(one.decrypt(key, 'provider.api_key')).toBe('key')
    expect(one.decrypt(webhook, 'gateway.webhook_secret')).toBe('hook')
  }
  for (let number = 0; number < 250; number++) expect(await secrets('webauthn').get(`passkey ${number} ☃`)).toBe(`value ${number}`)
  expect(await secrets('mcp').get('token')).toBe('mcp token')
  expect(secretKeyIds(dataDir)).toEqual([keyId])
  for (const one of [key, webhook, box.encrypt('new', PATHS[0] ?? '')]) expect(one).toContain(`enc:1:${keyId}:`)
}

test('every secret is encrypted with a new key while a daemon has the store open', TIMEOUT, async () => {
  const installed = await install()
  const [before] = secretKeyIds(dataDir)
  expect(await rotate()).toEqual({ changed: 253, unreadable: [] })
  const [after = ''] = secretKeyIds(dataDir)
  expect(after).not.toBe(before)
  await expectAll(installed, after)
  await installed.store.close()
})

test('a rotation that was interrupted anywhere loses nothing, and is finished by the next one', TIMEOUT, async () => {
  const installed = await install()
  const oldId = beginRotation(dataDir)
  const [newId = ''] = secretKeyIds(dataDir)
  expect(secretKeyIds(dataDir)).toEqual([newId, oldId])
  expect(installed.box.decrypt(installed.box.encrypt('x', 'y'), 'y')).toBe('x')
  expect(await installed.secrets('mcp').get('token')).toBe('mcp token')
  expect(beginRotation(dataDir)).toBe(oldId)
  expect(reencryptRows(dataDir, oldId)).toEqual({ changed: 251, unreadable: [] })
  expect(await installed.secrets('mcp').get('token')).toBe('mcp token')
  expect(reencryptRows(dataDir, oldId)).toEqual({ changed: 0, unreadable: [] })
  await installed.secrets('mcp').set('late', 'value')
  expect(await rotate()).toEqual({ changed: 2, unreadable: [] })
  await expectAll(installed, newId)
  expect(await installed.secrets('mcp').get('late')).toBe('value')
  await installed.store.close()
})

test('a value that could not be decrypted before is reported and left alone', TIMEOUT, async () => {
  const { store, box } = await install()
  const moved = box.encrypt('value', 'secrets.x.other')
  await store.keyValue('secret:x').set('name', moved)
  expect((await rotate()).unreadable).toEqual(['secrets.x.name'])
  expect(await store.keyValue('secret:x').get('name')).toBe(moved)
  await store.close()
})

test('a data directory without a key has nothing to rotate', TIMEOUT, async () => {
  await expect(rotate()).rejects.toMatchObject({ code: 'not_found' })
})
