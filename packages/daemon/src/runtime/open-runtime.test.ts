import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import offline from '@sluice/provider-offline'
import { defineFeature, type Feature } from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type OpenRuntime, openRuntime } from './open-runtime.ts'

let dataDir = ''
let runtime: OpenRuntime | undefined
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'runtime-'))
})
afterEach(async () => {
  await runtime?.close(0)
  runtime = undefined
  rmSync(dataDir, { recursive: true })
})

async function open(...features: Feature[]): Promise<OpenRuntime> {
  const configFile = join(dataDir, 'config.toml')
  const env = { SVC_LOG_LEVEL: 'error' }
  runtime = await openRuntime({ features: [offline, ...features], dataDir, configFile, env, profile: 'test', version: '0.0.0' })
  return runtime
}

describe('openRuntime', () => {
  test('emits feature_failed once for each feature that cannot be built or registered', async () => {
    const broken = defineFeature({
      id: 'x-broken',
      build: () => {
        throw new Error('no such chip')
      },
    })
    const refused = defineFeature({ id: 'x-refused', build: () => ({ register: () => Promise.reject(new Error('the token is wrong')) }) })
    const { bus, reload } = await open(broken, refused)
    const failures = () => bus.recent(100).flatMap(({ envelope }) => (envelope.type === 'feature_failed' ? [envelope] : []))
    const expected = [
      { feature: 'x-broken', error: 'no such chip' },
      { feature: 'x-refused', error: 'the token is wrong' },
    ]
    expect(failures()).toMatchObject(expected)
    await reload('[agent]\nmax_iterations = 3\n')
    expect(failures()).toMatchObject(expected)
  })

  test('runs a process that a feature starts while it registers once the sandboxes are known', async () => {
    const outputs: Promise<string>[] = []
    const early = defineFeature({
      id: 'x-early',
      build: (host) => ({
        async register() {
          const { signal } = new AbortController()
          const policy = { writable: [], network: true }
          const request = {
            file: 'echo',
            args: ['ran'],
            cwd: '/',
            env: { PATH: '/usr/bin:/bin' },
            policy,
            timeoutMs: 10_000,
            outputBytesMax: 100,
            signal,
          }
          outputs.push(host.spawn(request).then(({ stdout }) => stdout))
        },
      }),
    })
    await open(early)
    expect(await outputs[0]).toBe('ran\n')
  })

  test('leaves the configuration in force when a reload is not valid', async () => {
    const { config, snapshot, reload } = await open()
    const before = config()
    await expect(reload('[nosuch]\n')).rejects.toMatchObject({ code: 'config_invalid' })
    await expect(reload('[provider]\nkind = "nosuch"\n')).rejects.toMatchObject({ code: 'config_invalid' })
    expect(config()).toBe(before)
    expect(snapshot().version).toBe(1)
  })

  test('closes twice without an error', async () => {
    const { close } = await open()
    await Promise.all([close(0), close(0)])
  })
})
