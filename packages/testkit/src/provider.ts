/** The conformance suite of model providers, run against the model server: call `providerConformance` in a provider's tests. */
import { inspect } from 'node:util'
import {
  AppError,
  type Feature,
  type LanguageModel,
  type ModelMessage,
  type ModelPrompt,
  type ModelStreamPart,
  type Provider,
  type ProviderSettings,
  rowOfFeature,
  Secret,
} from '@sluice/sdk'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { testHost, throwingHost } from './host.ts'
import { type ModelServer, type ModelStep, startModelServer } from './model-server.ts'
import { within } from './within.ts'

/** A feature with model providers, and settings to try. */
export interface ProviderUnderTest {
  readonly feature: Feature
  /** Settings that work against the server, at least one for each kind; `api_key` is the server's key. */
  readonly settings: readonly ((server: Pick<ModelServer, 'url' | 'apiKey'>) => ProviderSettings)[]
  /** Settings that must be refused, each with the TOML key the error must name. */
  readonly invalid: readonly { readonly settings: ProviderSettings; readonly names: string }[]
  /** Environment variables, and the settings `detect` must find in them. */
  readonly detects: readonly { readonly env: Readonly<Record<string, string>>; readonly finds: object }[]
  /** Groups of rules that do not apply, each with its reason. */
  readonly except?: readonly { readonly rule: 'network'; readonly why: string }[]
}

/** A message that every provider answers with a tool call, either by script or because it obeys the text. */
const CALL = '/tool lookup {"city":"Oslo"}'
const CALLED = { name: 'lookup', input: { city: 'Oslo' } }
const TOOLS = [
  { type: 'function' as const, name: 'lookup', description: 'Weather of a city', inputSchema: { type: 'object' as const, properties: {} } },
]
/** The further members of an error of Google, which its readers demand. */
const GOOGLE = { code: 401, status: 'UNAUTHENTICATED' }
/** Milliseconds within which an aborted stream must end. */
const PROMPT_MS = 2000

const user = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })

/** Registers the tests of a provider, run against a model server for each kind. */
export function providerConformance({ feature, settings, invalid, detects, except = [] }: ProviderUnderTest): void {
  const row = rowOfFeature(feature)
  const providersOf = (): readonly Provider[] => feature.build(testHost(), {}).providers ?? []
  const serving = (kind: string): Provider => {
    const provider = providersOf().find(({ kinds }) => kinds.includes(kind))
    if (!provider) throw new Error(`no provider serves "${kind}"`)
    return provider
  }

  describe(`provider conformance: ${feature.id}`, () => {
    it('kinds equal the catalogue row', () => {
      expect(providersOf().flatMap(({ kinds }) => kinds)).toEqual(row?.kinds)
    })

    it('build does no I/O', () => {
      feature.build(throwingHost(), {})
    })

    it('detect finds nothing in an empty environment', () => {
      for (const provider of providersOf()) expect(provider.detect?.({})).toBeUndefined()
    })

    it.each(detects)('detect finds usable settings in $env', async ({ env, finds }) => {
      const found = providersOf().flatMap((provider) => provider.detect?.(env) ?? [])
      expect(found).toMatchObject([finds])
      for (const detected of found) await serving(detected.kind).load(detected, { fetch })
    })

    it.each(invalid)('check refuses a wrong $names as config_invalid before loading', ({ settings: wrong, names }) => {
      const check = () => serving(wrong.kind).check?.(wrong)
      expect(check).toThrow(expect.objectContaining({ code: 'config_invalid', message: expect.stringContaining(`[provider] ${names} `) }))
    })

    it.each(invalid)('load refuses a wrong $names as config_invalid', async ({ settings: wrong, names }) => {
      const refused = await serving(wrong.kind)
        .load(wrong, { fetch })
        .catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(AppError)
      expect(refused).toMatchObject({ code: 'config_invalid', message: expect.stringContaining(`[provider] ${names} `) })
    })

    for (const make of settings) {
      const { kind } = make({ url: 'http://127.0.0.1', apiKey: 'none' })
      describe(`kind "${kind}"`, () => modelRules((server) => ({ settings: make(server), provider: serving(kind) }), except.length === 0))
    }
  })
}

interface Arranged {
  readonly settings: ProviderSettings
  readonly provider: Provider
}

/** The server and the model of the tests, which are ready when the first test runs. */
interface ModelBench {
  readonly server: ModelServer
  readonly model: LanguageModel
  arrange(): Arranged
}

function modelRules(arrange: (server: ModelServer) => Arranged, network: boolean): void {
  let server: ModelServer
  let model: LanguageModel
  const bench: ModelBench = {
    get server() {
      return server
    },
    get model() {
      return model
    },
    arrange: () => arrange(server),
  }
  beforeAll(async () => {
    server = await startModelServer()
    const { provider, settings } = arrange(server)
    model = await provider.load(settings, { fetch })
  })
  afterAll(() => server.close())

  replyRules(bench)
  abortRules(bench, network)
  requestRules(bench, network)
}

/** Rules for models, replies, usage and tool calls. */
function replyRules(bench: ModelBench): void {
  it('lists the models and reports a refused key or unreachable endpoint', async () => {
    const { provider, settings } = bench.arrange()
    const signal = new AbortController().signal
    expect((await provider.models?.(settings, { fetch, signal })) ?? [{ id: 'small' }]).toMatchObject([{ id: 'small' }])
    if (!provider.models) return
    const refused = provider.models({ ...settings, api_key: new Secret('another-key') }, { fetch, signal })
    await expect(refused).rejects.toMatchObject({ code: 'unauthorized', message: expect.not.stringContaining('another-key') })
    const away = provider.models({ ...settings, base_url: 'http://127.0.0.1:1/v1' }, { fetch, signal })
    await expect(away).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining('http://127.0.0.1:1/v1') })
  })

  it('a stream yields the text of generate in several deltas', async () => {
    const prompt = [user('hello there')]
    const { content, finishReason } = await bench.model.doGenerate({ prompt })
    const parts = await collect(bench.model, prompt)
    const deltas = parts.flatMap((part) => (part.type === 'text-delta' ? [part.delta] : []))
    expect(deltas.length).toBeGreaterThan(1)
    expect(content).toMatchObject([{ type: 'text', text: deltas.join('') }])
    expect(finishReason.unified).toBe('stop')
  })

  it('generate and the end of a stream report usage', async () => {
    const prompt = [user('hello there')]
    const ends = (await collect(bench.model, prompt)).filter((part) => part.type === 'finish')
    const counted = { inputTokens: { total: expect.any(Number) }, outputTokens: { total: expect.any(Number) } }
    expect((await bench.model.doGenerate({ prompt })).usage).toMatchObject(counted)
    expect(ends).toMatchObject([{ usage: counted }])
  })

  it('calls a tool and answers its result', async () => {
    bench.server.script({ toolCalls: [CALLED] }, { text: 'In Oslo it is sunny.' })
    const parts = await collect(bench.model, [user(CALL)])
    const [call, ...more] = parts.filter((part) => part.type === 'tool-call')
    expect(more).toEqual([])
    expect(call).toMatchObject({ toolCallId: expect.stringMatching(/./), toolName: CALLED.name })
    expect(JSON.parse(call?.input ?? '')).toEqual(CALLED.input)
    expect(parts.at(-1)).toMatchObject({ type: 'finish', finishReason: { unified: 'tool-calls' } })
    const answer = await collect(bench.model, [user(CALL), ...exchange(call?.toolCallId ?? '')])
    expect(textOf(answer)).toContain('it is sunny')
  })

  it('each tool call has a unique id', async () => {
    bench.server.script({ toolCalls: [CALLED] }, { toolCalls: [CALLED] })
    const first = idsOf(await collect(bench.model, [user(CALL)]))
    const again = idsOf(await collect(bench.model, [user(CALL), ...exchange(first[0] ?? ''), user(CALL)]))
    expect(new Set([...first, ...again]).size).toBe(2)
  })
}

/** Rules for ending calls; `network` is false for a provider that makes no requests. */
function abortRules(bench: ModelBench, network: boolean): void {
  it('a call with an aborted signal rejects without a request', async () => {
    const asked = bench.server.requests.length
    const abortSignal = AbortSignal.abort()
    await expect(bench.model.doStream({ prompt: [user('hello')], abortSignal })).rejects.toThrow()
    await expect(bench.model.doGenerate({ prompt: [user('hello')], abortSignal })).rejects.toThrow()
    expect(bench.server.requests.length).toBe(asked)
  })

  it('an abort ends a stream promptly', async () => {
    bench.server.script({ text: 'one two three four five', chunkMs: 20 })
    const abort = new AbortController()
    const { stream } = await bench.model.doStream({ prompt: [user('hello there')], abortSignal: abort.signal })
    const reading = drain(stream, (part) => {
      if (part.type === 'text-delta') abort.abort()
    })
    expect(await within(PROMPT_MS, reading)).toBe('ended')
    await expect(reading).rejects.toMatchObject({ name: 'AbortError' })
    const request = bench.server.requests.at(-1)
    if (network) expect(await request?.ended).toBe('broken')
  })

  it.runIf(network)('an abort ends a hanging request', async () => {
    bench.server.script({ fault: 'hang' })
    const abort = new AbortController()
    const asked = bench.server.requests.length
    const hanging = bench.model.doStream({ prompt: [user('hello')], abortSignal: abort.signal })
    await expect.poll(() => bench.server.requests.length).toBe(asked + 1)
    abort.abort()
    await expect(hanging).rejects.toMatchObject({ name: 'AbortError' })
  })
}

/** Rules for requests that fail, skipped for a provider that makes none. */
function requestRules(bench: ModelBench, network: boolean): void {
  it.runIf(network)('every request goes through the given fetch', async () => {
    const { provider, settings } = bench.arrange()
    const refused = await provider.load(settings, { fetch: () => Promise.reject(new Error('not this way')) })
    await expect(refused.doGenerate({ prompt: [user('hello')] })).rejects.toThrow('not this way')
  })

  it.runIf(network)('no error contains the key, even if the service echoes it', async () => {
    const { apiKey } = bench.server
    bench.server.script({
      status: 401,
      body: { type: 'error', error: { type: 'authentication_error', message: `bad key ${apiKey}`, ...GOOGLE } },
    })
    const error: unknown = await bench.model.doGenerate({ prompt: [user('hello')] }).then(String, (thrown: unknown) => thrown)
    expect(error).toMatchObject({ statusCode: 401, message: expect.stringContaining('bad key') })
    expect(inspect(error, { depth: 10 }) + JSON.stringify(error)).not.toContain(apiKey)
  })

  it.runIf(network).each([408, 429, 500, 503])('status %i is one request, reported as retryable with its headers', async (status) => {
    bench.server.script({ status, headers: { 'retry-after': '7' } })
    const asked = bench.server.requests.length
    const error: unknown = await bench.model.doStream({ prompt: [user('hello')] }).then(String, (thrown: unknown) => thrown)
    expect(error).toMatchObject({ statusCode: status, isRetryable: true, responseHeaders: { 'retry-after': '7' } })
    expect(bench.server.requests.length).toBe(asked + 1)
  })

  it.runIf(network)('a broken connection is one request, reported as retryable', async () => {
    bench.server.script({ fault: 'reset' })
    const asked = bench.server.requests.length
    await expect(bench.model.doGenerate({ prompt: [user('hello')] })).rejects.toMatchObject({ isRetryable: true })
    expect(bench.server.requests.length).toBe(asked + 1)
  })

  it
    .runIf(network)
    .each<ModelStep>([
      { text: 'one two three', breakAfter: 4 },
      { text: 'one two three', endAfter: 4 },
      { toolCalls: [CALLED], endAfter: 2 },
      { fault: 'garbage' },
    ])('an incomplete stream never ends with success: %o', async (step) => {
    bench.server.script(step)
    const parts = await collect(bench.model, [user('hello')]).catch(() => [])
    const reasons = parts.map((part) => (part.type === 'finish' ? part.finishReason.unified : undefined))
    expect(reasons).not.toContain('stop')
    expect(reasons).not.toContain('tool-calls')
  })
}

/** The model's tool call and the tool's result as prompt messages. */
const exchange = (toolCallId: string): ModelPrompt => [
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId, toolName: CALLED.name, input: CALLED.input }] },
  {
    role: 'tool',
    content: [{ type: 'tool-result', toolCallId, toolName: CALLED.name, output: { type: 'text', value: 'it is sunny' } }],
  },
]

const textOf = (parts: readonly ModelStreamPart[]): string => parts.map((part) => (part.type === 'text-delta' ? part.delta : '')).join('')
const idsOf = (parts: readonly ModelStreamPart[]): readonly string[] =>
  parts.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []))

async function collect(model: LanguageModel, prompt: ModelPrompt): Promise<readonly ModelStreamPart[]> {
  const parts: ModelStreamPart[] = []
  await drain((await model.doStream({ prompt, tools: TOOLS })).stream, (part) => parts.push(part))
  return parts
}

async function drain(stream: ReadableStream<ModelStreamPart>, take: (part: ModelStreamPart) => void): Promise<void> {
  for await (const part of stream) take(part)
}
