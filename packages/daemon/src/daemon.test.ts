import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { agentSection, policySection } from '@sluice/config'
import { controlAddress } from '@sluice/http/control-address'
import { systemClock } from '@sluice/kit'
import { type Channel, defineFeature, secretText } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Daemon, type DaemonOptions, startDaemon } from './daemon.ts'
import { openInProcess } from './in-process.ts'
import { STOP_MS_MAX } from './stop-times.ts'

let dataDir: string
let running: Daemon | undefined
let squatter: Server | undefined
let sends: string[]

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'daemon-'))
  sends = []
})
afterEach(async () => {
  await running?.stop()
  squatter?.close()
  running = undefined
  rmSync(dataDir, { recursive: true, force: true })
})

const offline = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({ provider: 'offline' }) as never }] }),
})

const options = (more: Partial<DaemonOptions> = {}): DaemonOptions => {
  const channel: Channel = {
    name: 'x',
    allow: ['*'],
    limits: { text: 100, unit: 'utf16' },
    async send(_to, { text }) {
      sends.push(text)
      return { id: 'p' }
    },
  }
  const feature = defineFeature({ id: 'x-channel', build: () => ({ channels: [channel] }) })
  return {
    features: [offline, feature],
    dataDir,
    configFile: join(dataDir, 'config.toml'),
    env: { SVC_LOG_LEVEL: 'error' },
    profile: 'test',
    version: '0',
    port: 0,
    ...more,
  }
}

const withStore = async <Result>(use: (store: ReturnType<typeof openStore>) => Promise<Result>): Promise<Result> => {
  const store = openStore({ file: join(dataDir, 'sluice.db'), clock: systemClock, log: testHost().log })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

const queueReply = () =>
  withStore((store) =>
    store.outbox.add([
      { channel: 'x', account: 'a', to: { to: 'r' }, text: 'hello', part: 1, parts: 1, clientId: 'c', turnId: null, createdAtMs: 1 },
    ]),
  )

describe('startDaemon, when the start fails', () => {
  test('on a used port has sent nothing; the next start sends the queued reply', async () => {
    await queueReply()
    const taken = createServer()
    squatter = taken
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as AddressInfo
    await expect(startDaemon(options({ port }))).rejects.toMatchObject({ code: 'conflict' })
    expect(sends).toEqual([])
    expect(await withStore((store) => store.outbox.list({ limit: 1 }))).toMatchObject([{ state: 'queued', attempts: 0 }])
    running = await startDaemon(options())
    await expect.poll(() => sends).toEqual(['hello'])
  })

  test('after it bound the port releases the port, the store and the lock', async () => {
    const broken = defineFeature({
      id: 'x-broken',
      build: () => ({
        channels: [
          {
            name: 'y',
            get limits(): never {
              throw new Error('a bug')
            },
          } as unknown as Channel,
        ],
      }),
    })
    const before = options()
    await expect(startDaemon({ ...before, features: [...before.features, broken] })).rejects.toThrow('a bug')
    running = await startDaemon(options())
    expect((await fetch(`${running.url}/health`)).status).toBe(200)
  })
})

test.each(['drain', 'close'] as const)(
  'a stop ends in time, and says what it waits for, where a feature does not end its %s',
  async (step) => {
    const { log, logs } = testHost()
    const stuck = Promise.withResolvers<void>()
    const feature = defineFeature({ id: 'x-stuck', build: () => ({ [step]: () => stuck.promise }) })
    const given = options({ logger: log, env: { SVC_LOG_LEVEL: 'warn' } })
    // The limit of the stop comes early.
    const sleep: typeof systemClock.sleep = (ms, signal) => systemClock.sleep(ms === STOP_MS_MAX ? 2_000 : ms, signal)
    running = await startDaemon({ ...given, features: [...given.features, feature], clock: { ...systemClock, sleep } })
    await running.stop()
    expect(logs.filter(({ message }) => message.startsWith('daemon ends'))).toMatchObject([
      {
        message: 'daemon ends without waiting longer for its stop',
        fields: { waits_for: [step === 'drain' ? 'drain of features' : 'end of features'] },
      },
    ])
    // The data directory stays locked for as long as the daemon uses it.
    await expect(startDaemon(options())).rejects.toMatchObject({ code: 'conflict' })
    stuck.resolve()
    await vi.waitFor(
      async () => {
        running = await startDaemon(options())
      },
      { timeout: 20_000 },
    )
  },
)

test('answers on its control socket until it has stopped, and keeps commands off the database', async () => {
  running = await startDaemon(options())
  const socketPath = controlAddress(dataDir).path
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  request({ socketPath, path: '/api/status' }, (response) => resolve(response.resume().statusCode))
    .on('error', reject)
    .end()
  expect(await promise).toBe(200)
  expect(await openInProcess({ ...options(), only: 'store' })).toBeUndefined()
  await running.stop()
  expect(existsSync(socketPath)).toBe(false)
})

test('the vitals include the age of the oldest reply that waits', async () => {
  await queueReply()
  const sent = Promise.withResolvers<{ id: string }>()
  const channel: Channel = { name: 'x', allow: ['*'], limits: { text: 100, unit: 'utf16' }, send: () => sent.promise }
  const feature = defineFeature({ id: 'x-channel', build: () => ({ channels: [channel] }) })
  running = await startDaemon(options({ features: [offline, feature] }))
  const { runtime } = running
  await expect.poll(() => runtime.vitals()).toMatchObject({ repliesPending: 1, oldestReplySecs: expect.toSatisfy((secs) => secs > 0) })
  sent.resolve({ id: 'p' })
  await expect.poll(() => runtime.vitals()).toMatchObject({ repliesPending: 0, oldestReplySecs: 0 })
})

describe('a changed configuration', () => {
  test('has its sandbox probed at once, before any command runs', async () => {
    running = await startDaemon(options())
    const { runtime } = running
    await expect.poll(() => runtime.vitals().sandbox?.detail).toMatch(/no backend/)
    writeFileSync(join(dataDir, 'config.toml'), '[security.sandbox]\nbackend = "none"\n')
    await expect
      .poll(() => runtime.vitals().sandbox)
      .toEqual({ backend: 'none', state: 'unconfined', detail: 'commands run without a sandbox: it is switched off' })
  })

  test('is followed by warnings that are new, and by no others', async () => {
    const channel = { name: 'x', allow: [], limits: { text: 1, unit: 'utf16' }, send: async () => ({ id: 'p' }) } as const
    const sample = () => ({ headers: {}, body: '' })
    const webhook = { path: '/x', verify: () => ({ by: 'test' }), parse: () => [], sample, unsigned: 'secret' } as const
    const feature = defineFeature({
      id: 'x-channel',
      section: { path: 'x.channel', schema: v.object({ token: v.optional(secretText()) }) },
      build: (_host, { token }) => ({ channels: [token ? { ...channel, webhook } : channel] }),
    })
    running = await startDaemon(options({ features: [offline, feature] }))
    const warn = vi.spyOn(running.runtime.log, 'warn')
    const logged = () => warn.mock.calls.map(([message]) => message)
    writeFileSync(join(dataDir, 'config.toml'), '[x.channel]\ntoken = "t"\n')
    await expect.poll(() => logged()).toHaveLength(2)
    expect(logged()).toEqual([expect.stringContaining('plain text'), expect.stringContaining('not verified')])
    writeFileSync(join(dataDir, 'config.toml'), '[x.channel]\ntoken = "t"\n[agent]\nmax_iterations = 3\n')
    await expect.poll(() => running?.runtime.config().core(agentSection).max_iterations).toBe(3)
    expect(logged()).toHaveLength(2)
  })

  test('that is refused leaves the guards in force', async () => {
    running = await startDaemon(options())
    const { runtime } = running
    const before = runtime.guards()
    await expect(runtime.reload('[agent]\nworkspace = "elsewhere"\n[provider]\nkind = "unknown"\n')).rejects.toThrow('unknown')
    expect(runtime.guards()).toBe(before)
  })

  test('never shows its secrets or the replaced ones in the log', async () => {
    const written: string[] = []
    vi.spyOn(process.stderr, 'write').mockImplementation((line) => written.push(String(line)) > 0)
    const feature = defineFeature({
      id: 'x-channel',
      section: { path: 'x.channel', schema: v.object({ token: v.optional(secretText()) }) },
      build: ({ log }, { token }) => ({
        register: async () => log.error(`no answer from /bot${token?.reveal()}/me`),
        close: async () => log.error(`/bot${token?.reveal()} is closed`),
      }),
    })
    const configFile = join(dataDir, 'config.toml')
    try {
      writeFileSync(configFile, '[x.channel]\ntoken = "first-of-two"\n')
      running = await startDaemon(options({ features: [offline, feature] }))
      await running.runtime.reload('[x.channel]\ntoken = "second-of-two"\n')
      await expect.poll(() => written.filter((line) => line.includes('is closed'))).toHaveLength(1)
      expect(written.join('')).toContain('no answer from /bot[secret]/me')
      expect(written.join('')).not.toMatch(/first-of-two|second-of-two/)
    } finally {
      await running?.stop()
      vi.restoreAllMocks()
    }
  })
})

test('health is degraded while the configuration file is not valid', async () => {
  running = await startDaemon(options())
  const { runtime, reload } = running
  const file = join(dataDir, 'config.toml')
  writeFileSync(file, '[nosuch]\n')
  await reload()
  expect(runtime.health.look()).toMatchObject({ status: 'degraded', config: { state: 'rejected' } })
  writeFileSync(file, '')
  await reload()
  expect(runtime.health.look()).toMatchObject({ status: 'ok', config: { state: 'ok' } })
})

test('a text that the watch has read is not applied after a newer one', async () => {
  const file = join(dataDir, 'config.toml')
  const config = (level: string) => `[security.policy]\nlevel = "${level}"\n`
  running = await startDaemon(options())
  const { runtime, reload } = running
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const applied: string[] = []
  const ended: string[] = []
  const apply = runtime.reload
  Object.assign(runtime, {
    reload: async (text: string) => {
      applied.push(text)
      if (applied.length === 1) await gate
      const outcome = await apply(text)
      ended.push(text)
      return outcome
    },
  })
  writeFileSync(file, config('readonly'))
  await vi.waitFor(() => expect(applied).toEqual([config('readonly')]), { timeout: 20_000 })
  writeFileSync(file, config('full'))
  const reloaded = reload()
  // Time in which a reload that does not wait is over.
  for (let turn = 0; turn < 50; turn++) await readFile(file)
  open()
  await reloaded
  await vi.waitFor(() => expect(ended).toEqual([config('readonly'), config('full')]), { timeout: 20_000 })
})

test('a configuration that the agent can write is applied on request only, and no tool can write it', async () => {
  const project = join(dataDir, 'project')
  mkdirSync(project)
  const configFile = join(project, 'sluice.toml')
  const config = (level: string) => `[agent]\nworkspace = "${project}"\n[security.policy]\nlevel = "${level}"\n`
  writeFileSync(configFile, config('supervised'), { mode: 0o600 })
  running = await startDaemon(options({ configFile }))
  const { runtime, reload } = running
  const warn = vi.spyOn(runtime.log, 'warn')
  const level = () => runtime.config().core(policySection).level
  const workspace = runtime.lifecycle.agents().get('main')?.workspace
  await expect(workspace?.write('sluice.toml', Buffer.from(config('full')))).rejects.toMatchObject({ code: 'forbidden' })
  writeFileSync(configFile, config('full'))
  const logged = () => warn.mock.calls.map(([message]) => message)
  await expect.poll(() => logged()).toContainEqual(expect.stringContaining('so the change is not in force'))
  expect(level()).toBe('supervised')
  await reload()
  expect(level()).toBe('full')
})
