/** `sluice setup`, with scripted answers and against a server that speaks the wire formats of the providers. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { providerSection, readConfig, sandboxSection } from '@sluice/config'
import { setConfig } from '@sluice/config/edit'
import providerAnthropic from '@sluice/provider-anthropic'
import providerOffline from '@sluice/provider-offline'
import providerOpenai from '@sluice/provider-openai'
import { scratch } from '@sluice/qa/daemons/bundle'
import { piped, sluiceWith } from '@sluice/qa/daemons/run-command'
import { AppError } from '@sluice/sdk'
import { type ModelServerOptions, startModelServer } from '@sluice/testkit/model-server'
import { expect, onTestFinished, test } from 'vitest'
import { createOutput } from '../output.ts'
import { type Candidate, findCandidates } from '../setup/candidates.ts'
import { type Setup, setUp } from './setup.ts'
import { coloursIn } from './testing/colours-in.ts'

const FEATURES = [providerOpenai, providerAnthropic, providerOffline]
const KEY = 'sk-0123456789'
const calls = { toolCalls: [{ name: 'get_stock', input: { item: 'paper' } }] }
const good: NonNullable<ModelServerOptions['answer']> = ({ body }) =>
  JSON.stringify(body).includes('get_stock') ? calls : { text: 'Hello.' }
const sees: typeof good = (request) => {
  const text = coloursIn(JSON.stringify(request.body))
  return text === undefined ? good(request) : { text }
}

async function arrange({ config = '# mine\n', ...server }: ModelServerOptions & { readonly config?: string } = {}) {
  const models = await startModelServer({ apiKey: KEY, models: ['small', 'large'], answer: good, ...server })
  const { dir, dispose } = scratch(config.replaceAll('URL', `${models.url}/v1`))
  onTestFinished(async () => {
    await models.close()
    dispose()
  })
  const source = { configFile: join(dir, 'config.toml'), dataDir: dir, features: FEATURES, env: {} }
  const url = `${models.url}/v1`
  return {
    url,
    dir,
    source,
    requests: models.requests,
    file: () => readFileSync(source.configFile, 'utf8'),
    settings: async () => (await readConfig(source)).core(providerSection),
    run: (stdin: string, ...argv: string[]) => sluiceWith(FEATURES, piped(stdin), { MY_KEY: KEY })('setup', '--data-dir', dir, ...argv),
  }
}

type Arranged = Awaited<ReturnType<typeof arrange>>

/** Runs the dialogue with these answers, of which an empty one takes the proposal; aborts it after the last answer. */
async function converse({ source, settings }: Arranged, answers: readonly string[], { beforeLast }: { beforeLast?: () => unknown } = {}) {
  const asked: string[] = []
  const text = { out: '' }
  const left = [...answers]
  const candidates = FEATURES.flatMap((feature) => feature.build({} as never, {}).providers ?? []).flatMap((provider): Candidate[] =>
    provider.usual ? provider.kinds.map((kind) => ({ kind, provider })) : [],
  )
  const streams = { stdout: { write: (data: unknown) => (text.out += data) }, stderr: { write: (data: string) => (text.out += data) } }
  const context = { ...source, version: '0', profile: 'test', args: [], options: {}, json: false, out: createOutput(streams, {}) }
  const dialogue: Setup['dialogue'] = {
    async ask(question, { proposed = '' } = {}) {
      asked.push(question)
      if (left.length === 1) await beforeLast?.()
      const answer = left.shift()
      if (answer === undefined) throw new AppError('aborted', 'Setup was aborted. Nothing has changed.')
      return answer || proposed
    },
    closed: new AbortController().signal,
    close() {},
  }
  const { signal } = new AbortController()
  const setup = { context, dialogue, candidates, current: await settings(), givenKey: undefined, signal } as unknown as Setup
  const code = await setUp(setup).catch((error: AppError) => error.code)
  return { code, asked, out: text.out }
}

test('asks for provider, address, key and model, tests them and writes them with the key encrypted', async () => {
  const arranged = await arrange()
  const { code, out } = await converse(arranged, ['openai', arranged.url, KEY, '1', 'y'])
  expect(code).toBe(0)
  expect(out).toContain('+ api_key = (a new key, encrypted)')
  expect(out).toContain('ok  tool call')
  expect(out).not.toContain(KEY)
  expect(arranged.file()).toMatch(/^# mine\n/)
  expect(arranged.file()).not.toContain(KEY)
  const settings = await arranged.settings()
  expect(settings).toMatchObject({ kind: 'openai', base_url: arranged.url, model: 'small' })
  expect(settings.api_key?.reveal()).toBe(KEY)
})

test('asks again after a wrong key, and starts from the present settings', async () => {
  const arranged = await arrange()
  const wrong = await converse(arranged, ['anthropic', arranged.url, 'sk-wrong', 'anthropic', arranged.url, KEY, 'large', ''])
  expect(wrong).toMatchObject({ code: 0, out: expect.stringContaining('refuses the key with status 401') })
  const again = await converse(arranged, ['', '', '', ''])
  expect(again).toMatchObject({ code: 0, out: expect.stringContaining('The configuration has this already.') })
  expect(await arranged.settings()).toMatchObject({ kind: 'anthropic', model: 'large' })
})

test('tries a picture at an endpoint of others, and writes that the model sees pictures', async () => {
  const arranged = await arrange({ answer: sees, config: '[provider]\nkind = "ollama"\nmedia = ["audio"]\nmodel = "m"\n' })
  const { code, out } = await converse(arranged, ['openai', arranged.url, KEY, '1', 'y'])
  expect(code).toBe(0)
  expect(out).toMatch(/ok {2}image, .*: it sees/)
  expect(out).toContain('+ media = ["image"]')
  expect(out).toMatch(/pictures +sees them/)
  expect(await arranged.settings()).toMatchObject({ kind: 'openai', media: ['image'] })
  // What the person has set is not tried.
  const again = await converse(arranged, ['', '', '', ''])
  expect(again.out).not.toContain('image,')
  expect(again.out).toContain('The configuration has this already.')
})

test.each([
  ['does not see it', good],
  ['is not served pictures', (request) => (JSON.stringify(request.body).includes('image_url') ? { status: 500 } : good(request))],
] as const satisfies [string, typeof good][])('writes nothing about pictures where the model %s', async (_case, answer) => {
  const arranged = await arrange({ answer })
  const { code, out } = await converse(arranged, ['openai', arranged.url, KEY, '1', 'y'])
  expect(code).toBe(0)
  expect(out).toContain('The agent gets the paths of pictures, and not the pictures.')
  expect(out).toMatch(/pictures +sees none/)
  expect((await arranged.settings()).media).toBeUndefined()
})

test('tries no picture where the provider is known to read pictures', async () => {
  const arranged = await arrange()
  const { out } = await converse(arranged, ['anthropic', arranged.url, KEY, '1', 'y'])
  expect(out).not.toContain('image,')
  expect(out).toMatch(/pictures +sees them/)
})

test('begins a new file as `config init` does, with the sandbox required', async () => {
  const arranged = await arrange()
  rmSync(arranged.source.configFile)
  expect((await converse(arranged, ['openai', arranged.url, KEY, '1', 'y'])).code).toBe(0)
  const config = await readConfig(arranged.source)
  expect(config.core(sandboxSection).required).toBe(true)
  expect(config.core(providerSection)).toMatchObject({ kind: 'openai', model: 'small' })
  expect(arranged.file()).toContain('# Sluice configuration.')
})

test('writes nothing when [provider] was changed since setup read it, and keeps other changes', async () => {
  const arranged = await arrange()
  const other = { path: 'provider.base_url', value: 'https://other.example/v1' }
  const before = () => setConfig(arranged.source, [{ path: 'provider.kind', value: 'openai' }, other])
  expect((await converse(arranged, ['anthropic', arranged.url, KEY, '1', 'y'], { beforeLast: before })).code).toBe('conflict')
  expect(await arranged.settings()).toMatchObject({ kind: 'openai', base_url: other.value })
  expect(arranged.file()).not.toContain('api_key')
  const elsewhere = () => setConfig(arranged.source, [{ path: 'log.level', value: 'warn' }])
  expect((await converse(arranged, ['anthropic', arranged.url, KEY, '1', 'y'], { beforeLast: elsewhere })).code).toBe(0)
  expect(arranged.file()).toContain('level = "warn"')
})

test.each([0, 1, 2, 3, 4])('changes nothing when it is aborted after %i answers', async (count) => {
  const arranged = await arrange()
  const before = arranged.file()
  const { code, asked } = await converse(arranged, ['openai', arranged.url, KEY, '1'].slice(0, count))
  expect(code).toBe('aborted')
  expect(asked).toHaveLength(count + 1)
  expect(arranged.file()).toBe(before)
})

test('changes nothing when the person declines', async () => {
  const arranged = await arrange()
  const before = arranged.file()
  expect((await converse(arranged, ['openai', arranged.url, KEY, '1', 'n'])).code).toBe('aborted')
  expect(arranged.file()).toBe(before)
})

test('shows a part of a long list and narrows it by a part of the name', async () => {
  const models = Array.from({ length: 500 }, (_, number) => `vendor/model-${number}`)
  const arranged = await arrange({ models })
  const { out, code } = await converse(arranged, ['openrouter', arranged.url, KEY, 'nothing like it', 'model-49', '2', ''])
  expect(code).toBe(0)
  expect(out).toContain('… and 480 more')
  expect(out).toContain("The endpoint lists no model 'nothing like it'")
  expect(await arranged.settings()).toMatchObject({ model: 'vendor/model-490' })
})

test.each([
  ['a used-up quota', 429, { error: { code: 'insufficient_quota', message: 'pay first' } }, 'The account has no credit left.'],
  ['an unknown model', 404, { error: { message: 'gone' } }, 'Choose another one.'],
])('explains %s with its cure, and writes nothing when the person quits', async (_case, status, body, cure) => {
  const arranged = await arrange({ answer: () => ({ status, body }) })
  const before = arranged.file()
  const { code, out } = await converse(arranged, ['openai', arranged.url, KEY, '1', 'q'])
  expect(code).toBe(1)
  expect(out).toContain(cure)
  expect(arranged.file()).toBe(before)
})

test('takes the name of a model where the endpoint lists nothing, and warns of a model without tools', async () => {
  const arranged = await arrange({ models: [], answer: () => ({ text: 'I only talk.' }) })
  const { code, out } = await converse(arranged, ['openai', arranged.url, KEY, 'my-model', ''])
  expect(code).toBe(0)
  expect(out).toContain('it cannot use tools')
  expect(await arranged.settings()).toMatchObject({ model: 'my-model' })
})

test('removes the settings of the endpoint before, and keeps fallbacks and comments', async () => {
  const config = `[provider]\nkind = "ollama" # local\nmodel = "qwen3"\ntools = false\n[provider.options]\nseed = 1\n[[provider.fallback]]\nkind = "ollama"\nmodel = "qwen3"\n`
  const arranged = await arrange({ config })
  const { out } = await converse(arranged, ['openai', arranged.url, KEY, 'small', ''])
  expect(out).toContain('- tools = (set)')
  const settings = await arranged.settings()
  expect(settings).toMatchObject({ kind: 'openai', model: 'small', fallback: [{ kind: 'ollama' }] })
  expect([settings.tools, settings.options]).toEqual([undefined, undefined])
  expect(arranged.file()).toContain('# local')
})

test.each([
  ['standard input', `${KEY}\n`, ['--api-key-stdin']],
  ['a variable', '', ['--api-key-env', 'MY_KEY']],
])('takes the key from %s and asks nothing', async (_from, stdin, options) => {
  const arranged = await arrange()
  const argv = ['--provider', 'openai', '--base-url', arranged.url, '--model', 'small', ...options, '--json']
  const { code, out } = await arranged.run(stdin, ...argv)
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject({
    written: true,
    daemon: 'none',
    tests: [{ outcome: 'ok' }, { outcome: 'ok' }, { test: 'image', outcome: 'not_supported' }],
  })
  expect(out).not.toContain(KEY)
  expect((await arranged.settings()).api_key?.reveal()).toBe(KEY)
})

test('writes nothing when the test fails without a terminal, unless it is skipped', async () => {
  const arranged = await arrange({ answer: () => ({ status: 401 }) })
  const before = arranged.file()
  const argv = ['--provider', 'openai', '--base-url', arranged.url, '--model', 'small', '--api-key-env', 'MY_KEY']
  expect(await arranged.run('', ...argv)).toMatchObject({ code: 1, err: expect.stringContaining('Nothing has changed.') })
  expect(arranged.file()).toBe(before)
  expect(await arranged.run('', ...argv, '--skip-test')).toMatchObject({ code: 0 })
  expect(await arranged.settings()).toMatchObject({ kind: 'openai', model: 'small' })
})

test('refuses an unknown provider, an empty key and a missing variable', async () => {
  const arranged = await arrange()
  expect((await arranged.run('', '--provider', 'opnai')).err).toContain("did you mean 'openai'?")
  expect((await arranged.run('', '--provider', 'offline')).err).toContain("There is no provider 'offline'. This build has: openai")
  // This build leaves the feature of `google` out.
  expect((await arranged.run('', '--provider', 'google')).err).toMatch(
    /There is no provider 'google' in this build; to add it, .*npm run build -- .*provider-google' in a clone of Sluice\. This build has: openai/,
  )
  expect((await arranged.run('', '--provider', 'openai', '--api-key-stdin')).err).toContain('Standard input holds no key')
  expect((await arranged.run('', '--provider', 'openai', '--api-key-env', 'NONE')).err).toContain('The variable NONE is not set')
})

test('offers a key of the environment only for a provider with an address of its own', async () => {
  const providers = providerOpenai.build({} as never, {}).providers ?? []
  const down = () => Promise.reject(new Error('nothing runs here'))
  const env = { AZURE_OPENAI_API_KEY: KEY, GROQ_API_KEY: KEY }
  const withKey = (await findCandidates(providers, env, down)).filter(({ keyVariable }) => keyVariable)
  expect(withKey.map(({ kind }) => kind)).toEqual(['groq'])
})
