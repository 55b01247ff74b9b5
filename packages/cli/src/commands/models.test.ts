/** `sluice models`, against a server that speaks the wire formats of the providers. */
import providerAnthropic from '@sluice/provider-anthropic'
import providerOffline from '@sluice/provider-offline'
import providerOpenai from '@sluice/provider-openai'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { startModelServer } from '@sluice/testkit/model-server'
import { expect, onTestFinished, test } from 'vitest'

const sluice = sluiceWith([providerOpenai, providerAnthropic, providerOffline])

/** Starts a server with these models, and writes a configuration that names it `URL`. */
async function arrange(config: string, models: readonly string[] = ['small', 'large']) {
  const server = await startModelServer({ apiKey: null, models })
  const { dir, dispose } = scratch(config.replaceAll('URL', `${server.url}/v1`))
  onTestFinished(async () => {
    await server.close()
    dispose()
  })
  return { server, run: (...argv: string[]) => sluice(...argv, '--data-dir', dir) }
}

const OPENAI = '[provider]\nkind = "openai"\nbase_url = "URL"\nmodel = "small"\n'

test('lists the models of an endpoint once and marks the models of every entry', async () => {
  const { run } = await arrange(`${OPENAI}[[provider.fallback]]\nkind = "openai"\nbase_url = "URL"\nmodel = "large"\n`)
  const { code, out } = await run('models')
  expect(code).toBe(0)
  expect(out.match(/openai at/g)).toHaveLength(1)
  expect(out).toContain('provider uses small')
  expect(out).toContain('provider.fallback[0] uses large')
  expect(out.split('\n').filter((line) => line.startsWith('*'))).toHaveLength(2)
})

test('lists the models of the chosen entry or kind, as JSON', async () => {
  const { run } = await arrange(`${OPENAI}[[provider.fallback]]\nkind = "anthropic"\nbase_url = "URL"\napi_key = "k"\nmodel = "large"\n`)
  for (const chosen of ['1', 'anthropic']) {
    const { endpoints } = JSON.parse((await run('models', '--provider', chosen, '--json')).out)
    expect(endpoints).toMatchObject([{ provider: 'anthropic', entries: [{ entry: 'provider.fallback[0]' }] }])
    expect(endpoints[0].models.map(({ id }: { id: string }) => id)).toEqual(['small', 'large'])
  }
  expect(await run('models', '--provider', 'groq')).toMatchObject({ code: 1, err: expect.stringContaining('openai (provider)') })
})

test('shows the models whose names match, and a model in use that is not listed', async () => {
  const { run } = await arrange(OPENAI.replace('small', 'gone'))
  const { out } = await run('models', '--match', 'LAR')
  expect(out).toContain('provider uses gone, which the endpoint does not list')
  expect(out).toContain('large')
  expect(out).not.toContain('small')
  expect((await run('models', '--match', 'none of them')).out).toContain('No model matches.')
})

test('exits with 1 and the reason when an endpoint does not answer, and lists the others', async () => {
  const { run } = await arrange(`[provider]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "small"
[[provider.fallback]]
kind = "openai"
base_url = "URL"
model = "large"
`)
  const { code, out } = await run('models')
  expect(code).toBe(1)
  expect(out).toContain('its window is 32,000 tokens, which is assumed; set context_window if it is another')
  expect(out).toContain('no list: http://127.0.0.1:1/v1/models cannot be reached')
  expect(out).toMatch(/\* +large/)
})

test('says that the offline provider has no list', async () => {
  const { run } = await arrange('')
  expect(await run('models')).toMatchObject({ code: 0, out: expect.stringContaining('This provider has no list of models.') })
})
