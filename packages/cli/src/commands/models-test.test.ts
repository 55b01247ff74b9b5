/** `sluice models test`, against a server that speaks the wire formats of the providers and a model that follows instructions. */
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import providerAnthropic from '@sluice/provider-anthropic'
import providerOffline from '@sluice/provider-offline'
import providerOpenai from '@sluice/provider-openai'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { type ModelRequest, type ModelStep, startModelServer } from '@sluice/testkit/model-server'
import { expect, onTestFinished, test } from 'vitest'
import { coloursIn } from './testing/colours-in.ts'

const FEATURES = [providerOpenai, providerAnthropic, providerOffline]
const sluice = sluiceWith(FEATURES)

/** Answers as a good model does. */
function follow({ body, lastUserText }: ModelRequest): ModelStep {
  const json = JSON.stringify(body)
  const call = (item: string) => ({ name: 'get_stock', input: { item } })
  const pieces = /\\?"pieces\\*":\s*(\d+)/.exec(json)?.[1]
  const colours = coloursIn(json)
  if (pieces !== undefined) return { text: `There are ${pieces} pieces.` }
  if (colours !== undefined) return { text: colours }
  if (lastUserText.includes('ink')) return { toolCalls: [call('paper'), call('ink')] }
  if (lastUserText.includes('paper')) return { toolCalls: [call('paper')] }
  return { text: 'Hello there, 1 2 3.' }
}

const KEY = 'sk-0123456789'
const COSTLY = '[cost]\ndaily_limit_usd = 1\nprices.small = { input = 1000, output = 1000 }\n'

const sourceIn = (dir: string) => ({ dataDir: dir, configFile: join(dir, 'config.toml'), env: {} })

type Arrangement = { answer?: typeof follow; more?: string | ((url: string) => string) }

async function arrange(kind: string, { answer = follow, more = '' }: Arrangement = {}) {
  const server = await startModelServer({ apiKey: KEY, answer })
  const { dir, dispose } = scratch(
    `[provider]\nkind = "${kind}"\nbase_url = "${server.url}/v1"\nmodel = "small"\napi_key = "${KEY}"\nmax_retries = 0\n${typeof more === 'string' ? more : more(server.url)}`,
  )
  onTestFinished(async () => {
    await server.close()
    dispose()
  })
  const run = (...argv: string[]) => sluice('models', 'test', ...argv, '--data-dir', dir)
  const beside = (...argv: string[]) => sluice(...argv, '--data-dir', dir)
  return { server, dir, run, beside, json: async (...argv: string[]) => JSON.parse((await run('--json', ...argv)).out).models }
}

interface Outcome {
  readonly test: string
  readonly outcome: string
  readonly detail: string
}
const outcomes = ([{ results }]: [{ results: readonly Outcome[] }]) =>
  Object.fromEntries(results.map(({ test, outcome }) => [test, outcome]))
const ALL_OK = { text: 'ok', streaming: 'ok', tool_call: 'ok', tool_result: 'ok', parallel_tool_calls: 'ok', image: 'ok' }

test.each(['openai', 'anthropic', 'groq', 'openrouter', 'ollama'])('passes a model of %s that does everything', async (kind) => {
  const { run, json } = await arrange(kind)
  expect(outcomes(await json())).toEqual(ALL_OK)
  expect((await run('--only', 'text,image')).code).toBe(0)
})

test('records the tokens and the cost of the tests, and stops at the spending limit', async () => {
  const { json, run } = await arrange('openai', { more: COSTLY })
  const [model] = await json('--only', 'text')
  expect(model).toMatchObject({ provider: 'openai', model: 'small', cost_usd: expect.any(Number) })
  expect(model.cost_usd).toBeCloseTo((model.input_tokens + model.output_tokens) / 1000)
  await json()
  const refused = await run()
  expect(refused.err).toContain('Daily budget of 1 USD is used up')
  expect(refused.code).not.toBe(0)
})

test('ends after the first test when the key is refused, with exit code 1', async () => {
  const { run, server } = await arrange('openai', { answer: () => ({ status: 401 }) })
  const { code, out } = await run()
  expect(code).toBe(1)
  expect(out).toContain('failed')
  expect(out).toContain('refused our credentials')
  expect(server.requests).toHaveLength(1)
})

test('calls a model that cannot use tools or see images not supported, with exit code 0', async () => {
  const answer = (request: ModelRequest): ModelStep => {
    if (JSON.stringify(request.body).includes('image_url')) return { status: 400, body: { error: { message: 'no images here' } } }
    return { text: 'I am only a language model.' }
  }
  const { json, run } = await arrange('openai', { answer })
  expect(outcomes(await json())).toEqual({
    text: 'ok',
    streaming: 'ok',
    tool_call: 'not_supported',
    tool_result: 'not_supported',
    parallel_tool_calls: 'not_supported',
    image: 'not_supported',
  })
  const { code, out } = await run('--only', 'image')
  expect(code).toBe(0)
  expect(out).toContain('no images here')
})

test('tells a model that calls no tool from one that makes a single call', async () => {
  const detail = async (answer: typeof follow): Promise<string> => {
    const [model] = await (await arrange('openai', { answer })).json('--only', 'parallel_tool_calls')
    return model.results[0].detail
  }
  expect(await detail(() => ({ text: 'I only talk.' }))).toBe('it did not call the tool')
  expect(await detail(() => ({ toolCalls: [{ name: 'get_stock', input: { item: 'paper' } }] }))).toContain('one call in a reply')
})

test('shows the limits that the model has shown', async () => {
  const answer = (request: ModelRequest): ModelStep =>
    JSON.stringify(request.body).includes('get_stock')
      ? { status: 400, body: { error: { message: 'registry.ollama.ai/library/gemma3 does not support tools' } } }
      : follow(request)
  const { json } = await arrange('ollama', { answer })
  const models = await json()
  expect(outcomes(models)).toMatchObject({ tool_call: 'not_supported', image: 'ok' })
  expect(models[0].limits).toEqual(['does not support tools'])
})

test.each<[string, ModelStep, string]>([
  ['a used-up quota', { status: 429, body: { error: { code: 'insufficient_quota', message: 'pay first' } } }, 'pay first'],
  ['an unknown model', { status: 404, body: { error: { message: 'no such model' } } }, 'no such model'],
  ['a reply that breaks off', { fault: 'reset' }, 'could not be reached'],
  ['a web page', { fault: 'garbage' }, 'sent a web page in place of a reply'],
])('fails with the reason for %s', async (_case, step, reason) => {
  const { run } = await arrange('openai', { answer: () => step })
  expect(await run()).toMatchObject({ code: 1, out: expect.stringContaining(reason) })
})

test('fails when the stream ends early, and goes on with the next test', async () => {
  const answer = (request: ModelRequest): ModelStep =>
    (request.body as { stream?: boolean }).stream ? { text: 'one two three', endAfter: 2 } : follow(request)
  const { json } = await arrange('openai', { answer })
  expect(outcomes(await json())).toEqual({ ...ALL_OK, streaming: 'failed' })
})

test('tests another model of the endpoint', async () => {
  const { json, server } = await arrange('openai')
  expect(await json('--only', 'text', '--model', 'large')).toMatchObject([{ model: 'large' }])
  expect(server.requests.map(({ body }) => (body as { model: string }).model)).toEqual(['large'])
})

test('refuses the offline provider, an unknown entry and an unknown test', async () => {
  const { dir, dispose } = scratch()
  onTestFinished(dispose)
  expect(await sluice('models', 'test', '--data-dir', dir)).toMatchObject({ err: expect.stringContaining('sluice setup') })
  const { run } = await arrange('openai')
  expect((await run('--provider', '3')).err).toContain("No configured model has the provider '3'")
  expect((await run('--only', 'txt')).err).toContain('--only wants text, streaming')
})

test('tests every configured model, and one entry by its number, kind or table', async () => {
  const more = (url: string) =>
    `[[provider.fallback]]\nkind = "groq"\nbase_url = "${url}/groq/v1"\nmodel = "second"\napi_key = "${KEY}"
[[provider.fallback]]\nkind = "offline"
[agents.support.provider]\nkind = "ollama"\nbase_url = "${url}/v1"\nmodel = "third"\napi_key = "${KEY}"
[agents.sales]\n`
  const { json } = await arrange('openai', { more })
  const tested = async (...argv: string[]) =>
    (await json('--only', 'text', ...argv)).map(({ entry, model }: { entry: string; model: string }) => `${entry} ${model}`)
  expect(await tested()).toEqual(['provider small', 'provider.fallback[0] second', 'agents.support.provider third'])
  expect(await tested('--model', 'other')).toEqual(['provider other'])
  expect(await tested('--provider', '1')).toEqual(['provider.fallback[0] second'])
  expect(await tested('--provider', 'ollama')).toEqual(['agents.support.provider third'])
  expect(await tested('--provider', 'agents.support.provider')).toEqual(['agents.support.provider third'])
})

test('setup and doctor let the running daemon send their requests, so that they count for the spending limits', async () => {
  const { dir, beside, server } = await arrange('openai', { more: COSTLY })
  const daemon = await startDaemon({ ...sourceIn(dir), features: FEATURES, profile: 'test', version: '0', port: 0 })
  onTestFinished(daemon.stop)
  const spent = () => daemon.runtime.store.turns.spentUsd(0)
  const doctor = await beside('doctor', '--json')
  expect(JSON.parse(doctor.out)).toContainEqual(expect.objectContaining({ check: 'provider', status: 'ok' }))
  const afterDoctor = await spent()
  expect(afterDoctor).toBeGreaterThan(0)
  const argv = ['setup', '--provider', 'openai', '--base-url', `${server.url}/v1`, '--model', 'small', '--yes', '--json']
  expect(JSON.parse((await beside(...argv)).out).tests).toMatchObject([{ outcome: 'ok' }, { outcome: 'ok' }, { outcome: 'ok' }])
  const afterSetup = await spent()
  expect(afterSetup).toBeGreaterThan(afterDoctor)
  await beside('models', 'test')
  expect((await beside('models', 'test')).err).toContain('Daily budget of 1 USD is used up')
  const requests = server.requests.length
  expect((await beside(...argv)).err).toContain('Daily budget of 1 USD is used up')
  expect((await beside('doctor')).out).toContain('Daily budget of 1 USD is used up')
  expect(server.requests).toHaveLength(requests)
})

test('an endpoint that is not configured is not tested for a caller without a credential', async () => {
  const { dir, server } = await arrange('openai', { more: '[gateway]\nrequire_pairing = false\n' })
  const daemon = await startDaemon({ ...sourceIn(dir), features: FEATURES, profile: 'test', version: '0', port: 0 })
  onTestFinished(daemon.stop)
  const body = JSON.stringify({ endpoint: { kind: 'openai', base_url: `${server.url}/v1`, model: 'small' } })
  const headers = { 'content-type': 'application/json' }
  const { status } = await fetch(`${daemon.url}/api/models/test`, { method: 'POST', headers, body })
  expect([status, server.requests.length]).toEqual([403, 0])
})
