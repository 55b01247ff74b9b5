/** The configuration of a cluster: two daemons of one process and commands that share it in a database. */
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedModel } from '@sluice/agent/testing/scripted-model'
import { agentSection, clusterSection, type LoadedConfig, providerSection } from '@sluice/config'
import { setConfig } from '@sluice/config/edit'
import { rotateSecrets } from '@sluice/config/rotate-secrets'
import { type Daemon, startDaemon } from '@sluice/daemon'
import { configuredStoreTools, withClusterConfig } from '@sluice/runtime/open-backend'
import { defineFeature } from '@sluice/sdk'
import { secretStore } from '@sluice/store'
import { openSecretBox, secretKeyIds } from '@sluice/store/secret-box'
import storePostgres from '@sluice/store-postgres'
import { startPostgres, type TestServer } from '@sluice/store-postgres/testing/postgres-server'
import { testHost } from '@sluice/testkit/host'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'))
const features = [
  storePostgres,
  defineFeature({
    id: 'provider-offline',
    build: () => ({ providers: [{ kinds: ['offline'], load: async () => scriptedModel([{ text: 'hello' }]) }] }),
  }),
]
let server: TestServer
let schemas = 0
const running: Daemon[] = []
beforeAll(async () => {
  server = await startPostgres({ inMemory: true })
  openSecretBox(folder).encrypt('', '')
})
afterEach(async () => {
  for (const daemon of running.splice(0)) await daemon.stop()
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

interface Node {
  readonly daemon: Daemon
  readonly file: string
  readonly source: Parameters<typeof withClusterConfig>[0]
  readonly lines: string[]
  readonly config: () => LoadedConfig
}

async function start(schema: string, name: string, rest: string): Promise<Node> {
  const dataDir = join(folder, `${schema}-${name}`)
  mkdirSync(dataDir, { mode: 0o700 })
  copyFileSync(join(folder, 'secret.key'), join(dataDir, 'secret.key'))
  const file = join(dataDir, 'config.toml')
  const store = `[store]\nbackend = "postgres"\nurl = "${server.url}"\nschema = "${schema}"`
  writeFileSync(file, `${store}\n\n[cluster]\nname = "test"\nnode = "${name}"\n\n${rest}`, { mode: 0o600 })
  const lines: string[] = []
  const log = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const source = { features, dataDir, configFile: file, env: {}, version: '1.0.0' }
  const daemon = await startDaemon({ ...source, profile: 'test', listens: false, logger: { debug: log, info: log, warn: log, error: log } })
  running.push(daemon)
  return { daemon, file, source, lines, config: daemon.runtime.config }
}

const MODEL = '[provider]\nkind = "offline"\nmodel = "m"\n\n[gateway]\nport = 4100\n\n'

async function twoNodes() {
  const schema = `config_${schemas++}`
  const first = await start(schema, 'node-1', `${MODEL}[agent]\nmax_concurrent_turns = 3\n`)
  const second = await start(schema, 'node-2', '[gateway]\nport = 4200\n\n[agent]\nmax_concurrent_turns = 9\n')
  return { first, second }
}

const turnsOf = ({ config }: Node) => config().core(agentSection).max_concurrent_turns

test('the file of the first node becomes the configuration of all, except for the keys of a node', async () => {
  const { first, second } = await twoNodes()
  expect([turnsOf(first), turnsOf(second)]).toEqual([3, 3])
  expect([first, second].map(({ config }) => config().core(clusterSection).node)).toEqual(['node-1', 'node-2'])
  expect(second.lines.join('\n')).toMatch(/sections of the file are ignored .*"ignored":\["agent"\]/)
  const shared = await first.daemon.runtime.store.cluster?.config.read()
  expect(shared).toMatchObject({ version: 1, by: 'node-1' })
  expect(shared?.text).toContain('max_concurrent_turns = 3')
  expect(shared?.text).not.toMatch(/postgres|node-1|4100/)
}, 60_000)

test('a command changes the configuration of every node, and each shows its version', async () => {
  const { first, second } = await twoNodes()
  const before = readFileSync(second.file, 'utf8')
  await withClusterConfig(second.source, (source) => setConfig(source, [{ path: 'agent.max_concurrent_turns', value: '5' }]))
  for (const node of [first, second]) await expect.poll(() => turnsOf(node), { timeout: 10_000 }).toBe(5)
  const versions = async () => (await first.daemon.runtime.store.cluster?.nodes())?.map(({ configVersion }) => configVersion)
  await expect.poll(versions, { timeout: 10_000 }).toEqual([2, 2])
  expect(readFileSync(second.file, 'utf8')).toBe(before)
  await withClusterConfig(second.source, (source) => setConfig(source, [{ path: 'gateway.port', value: '4300' }]))
  expect(readFileSync(second.file, 'utf8')).toBe(before.replace('4200', '4300'))
  expect(await first.daemon.runtime.store.cluster?.config.read()).toMatchObject({ version: 2 })
}, 60_000)

test('an editor that shows another version, and a text that is not valid, change nothing', async () => {
  const { first, second } = await twoNodes()
  const { settings } = first.daemon.runtime
  const { version } = await settings.shown()
  await second.daemon.runtime.settings.save(
    [{ key: 'agent.max_concurrent_turns', value: 6 }],
    (await second.daemon.runtime.settings.shown()).version,
  )
  await expect(settings.save([{ key: 'agent.max_concurrent_turns', value: 7 }], version)).rejects.toMatchObject({ code: 'conflict' })
  const shown = await settings.shown()
  await expect(settings.save([{ key: 'agent.max_concurrent_turns', value: 'many' }], shown.version)).rejects.toThrow('max_concurrent_turns')
  for (const node of [first, second]) await expect.poll(() => turnsOf(node), { timeout: 10_000 }).toBe(6)
}, 60_000)

/** As `sluice secrets rotate` does it in the data directory of the node. */
async function rotate({ source }: Node) {
  const tools = await configuredStoreTools({ ...source, log: testHost().log })
  const { backend, options } = tools ?? expect.fail('the database is configured')
  const reencryptServer = async (oldId: string | null) =>
    (await backend.reencrypt?.({ ...options, oldId })) ?? expect.fail('the backend has secrets')
  return withClusterConfig(source, (cluster) => rotateSecrets({ ...cluster, reencryptServer, settleMs: 0 }))
}

test('a new key encrypts the secrets in the database and in the shared configuration, once no other node runs', async () => {
  const { first, second } = await twoNodes()
  const { dataDir } = first.source
  await withClusterConfig(first.source, (source) => setConfig(source, [{ path: 'provider.api_key', value: 'the key of the model' }]))
  const { store } = first.daemon.runtime
  const secretsWith = (dir: string) => secretStore(openSecretBox(dir), store.keyValue('secret:channel-x'), 'secrets.channel-x')
  await secretsWith(dataDir).set('token', 'a secret')
  const sealed = async () => (await store.cluster?.config.read()) ?? expect.fail('there is a configuration')
  const before = await sealed()
  const [oldId = ''] = secretKeyIds(dataDir)
  expect(before.text).toContain(`api_key = "enc:1:${oldId}:`)

  await expect(rotate(first)).rejects.toThrow(/^Other daemons work with the database and have only the old key: node-2\. Stop them/)
  expect(secretKeyIds(dataDir)).toEqual([oldId])
  expect(await sealed()).toEqual(before)
  expect(await secretsWith(second.source.dataDir).get('token')).toBe('a secret')

  await second.daemon.stop()
  // Two secrets, and the HMACs of the configuration, of two values that the daemon keeps, and of the mark that rows are signed.
  expect(await rotate(first)).toEqual({ changed: 6, unreadable: [] })
  const [newId = ''] = secretKeyIds(dataDir)
  expect(newId).not.toBe(oldId)
  const after = await sealed()
  expect(after.version).toBe(before.version + 1)
  expect(after.text).toContain(`api_key = "enc:1:${newId}:`)
  expect(after.text).not.toContain(oldId)
  expect(await secretsWith(dataDir).get('token')).toBe('a secret')
  expect(String(await store.keyValue('secret:channel-x').get('token'))).toContain(`enc:1:${newId}:`)
  await expect.poll(() => first.daemon.runtime.config().core(providerSection).api_key?.reveal()).toBe('the key of the model')
  // The nodes show the key that they encrypt with now, not that of their start.
  const keys = async () => (await store.cluster?.nodes())?.map(({ keyId }) => keyId)
  await expect.poll(keys, { timeout: 10_000 }).toEqual([newId])

  const restart = () => startDaemon({ ...second.source, profile: 'test', listens: false, logger: testHost().log })
  await expect(restart()).rejects.toThrow(/secret\.key/)
  copyFileSync(join(dataDir, 'secret.key'), join(second.source.dataDir, 'secret.key'))
  const again = await restart()
  running.push(again)
  expect(again.runtime.config().core(providerSection).api_key?.reveal()).toBe('the key of the model')
}, 120_000)
