import { providerSection } from '@sluice/config'
import { AppError, type Provider, type ProviderSettings, Secret } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { expect, test } from 'vitest'
import { scriptedModel } from '../testing/scripted-model.ts'
import { chooseProviders } from './choose-providers.ts'
import { createModelChain, shownLimits } from './model-chain.ts'

const provider = (kinds: string[], detect?: Provider['detect'], load: Provider['load'] = async () => scriptedModel([])): Provider => ({
  kinds,
  ...(detect && { detect }),
  load,
})
const key = new Secret('from the environment')
const offline = provider(['offline'])
const openai = provider(['openai', 'ollama'], (env) => (env.OPENAI_API_KEY ? { kind: 'openai', api_key: key, model: 'found' } : undefined))
const all = [offline, openai]
const env = { OPENAI_API_KEY: 'x' }

test('uses the offline provider without configuration and keys', () => {
  expect(chooseProviders({ fallback: [] }, all, {})).toEqual([{ kind: 'offline' }])
})

test('uses a provider of the environment with the configured model', () => {
  expect(chooseProviders({ fallback: [] }, all, env)).toEqual([{ kind: 'openai', api_key: key, model: 'found' }])
  expect(chooseProviders({ model: 'mine', fallback: [] }, all, env)).toEqual([{ kind: 'openai', api_key: key, model: 'mine' }])
})

test('prefers the configured kind, with a missing key from the environment', () => {
  expect(chooseProviders({ kind: 'offline', fallback: [] }, all, env)).toEqual([{ kind: 'offline' }])
  expect(chooseProviders({ kind: 'openai', model: 'mine', fallback: [] }, all, env)).toEqual([
    { kind: 'openai', api_key: key, model: 'mine' },
  ])
})

test('does not send the key of the environment to another address', () => {
  const chosen = chooseProviders({ kind: 'openai', base_url: 'http://elsewhere.example/v1', fallback: [] }, all, env)
  expect(chosen).toEqual([{ kind: 'openai', base_url: 'http://elsewhere.example/v1' }])
})

test('keeps the order of fallbacks', () => {
  const chosen = chooseProviders({ kind: 'ollama', fallback: [{ kind: 'openai', api_key: key }, { kind: 'offline' }] }, all, {})
  expect(chosen.map(({ kind }) => kind)).toEqual(['ollama', 'openai', 'offline'])
})

test('refuses an unknown kind with the known ones, and a left-out one with its build', () => {
  const refusal = (kind: string) => expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(kind) })
  expect(() => chooseProviders({ kind: 'opneai', fallback: [] }, all, {})).toThrow(
    refusal('"opneai" is unknown; did you mean "openai"? This build has: offline, openai, ollama'),
  )
  expect(() => chooseProviders({ kind: 'anthropic', fallback: [] }, all, {})).toThrow(refusal('npm run build'))
  expect(() => chooseProviders({ fallback: [{ kind: 'nope' }] }, all, {})).toThrow(refusal('nope'))
})

test('refuses a key or address without a kind', () => {
  for (const name of ['api_key', 'base_url']) {
    const { issues } = v.safeParse(providerSection.schema, { [name]: 'https://models.example/v1' })
    expect(issues?.map(({ message }) => message)).toEqual([expect.stringContaining(`${name} is set without kind`)])
  }
})

test('refuses a configuration without provider in a build without the offline provider', () => {
  expect(() => chooseProviders({ fallback: [] }, [openai], {})).toThrow(
    expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining('this build has no offline provider') }),
  )
})

test('refuses settings that the provider refuses, with their entry', () => {
  const strict: Provider = {
    ...openai,
    check({ model }) {
      if (!model) throw new AppError('config_invalid', '[provider] model is missing')
    },
  }
  expect(() => chooseProviders({ kind: 'openai', api_key: key, fallback: [] }, [offline, strict], {})).toThrow(
    '[provider] model is missing',
  )
  const asFallback = { kind: 'offline', fallback: [{ kind: 'openai', api_key: key }] }
  expect(() => chooseProviders(asFallback, [offline, strict], {})).toThrow('provider.fallback[0]: [provider] model is missing')
})

test('loads an entry once on first use and retries a failed load', async () => {
  const loads: ProviderSettings[] = []
  let fails = true
  const model = scriptedModel([])
  const chain = createModelChain({
    settings: [{ kind: 'openai', model: 'm' }, { kind: 'offline' }],
    providers: [
      offline,
      provider(['openai'], undefined, async (settings) => {
        loads.push(settings)
        if (fails) throw new Error('not yet')
        return model
      }),
    ],
    log: testHost().log,
    timeoutSecs: 300,
    fetch,
  })
  expect(chain.labels).toEqual([
    { provider: 'openai', model: 'm' },
    { provider: 'offline', model: 'default' },
  ])
  expect(loads).toEqual([])
  await expect(chain.load(0)).rejects.toThrow('not yet')
  fails = false
  expect(await Promise.all([chain.load(0), chain.load(0)])).toEqual([model, model])
  expect(loads.length).toBe(2)
  await expect(chain.load(7)).rejects.toMatchObject({ code: 'config_invalid' })
})

test('logs and remembers what a model has refused', async () => {
  const { log, logs } = testHost()
  const refusing: Provider = {
    kinds: ['ollama'],
    async load(_settings, { onLimit }) {
      onLimit?.('does not support tools')
      return scriptedModel([])
    },
  }
  const chain = createModelChain({ settings: [{ kind: 'ollama', model: 'm' }], providers: [refusing], fetch, timeoutSecs: 300, log })
  expect(shownLimits(chain)).toEqual([])
  await chain.load(0)
  expect(shownLimits(chain)).toEqual(['ollama:m does not support tools'])
  expect(logs).toMatchObject([{ level: 'warn', message: 'model does not support tools', fields: { model: 'ollama:m' } }])
})
