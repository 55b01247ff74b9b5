import type { Tool } from '@sluice/sdk'
import type { FakeProvider } from '@sluice/testkit/fake-provider'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { webSection } from './config.ts'
import feature from './index.ts'
import { SEARCH_KEY, startServices } from './testing/services.ts'

const HITS = [
  { title: 'First  page', url: 'https://a.example/1', text: 'some\n words' },
  { title: '', url: 'https://b.example/2', text: 'x'.repeat(2000) },
  { title: 'No address', url: 'javascript:alert(1)', text: '' },
  { title: 'Third', url: 'https://c.example/3', text: '' },
]
const SERVICES = [
  ['brave', { search_key: SEARCH_KEY, path: '/brave' }],
  ['tavily', { search_key: SEARCH_KEY, path: '/tavily' }],
  ['searxng', { path: '/searx' }],
] as const

let services: FakeProvider
beforeAll(async () => {
  services = await startServices(HITS)
})
afterAll(() => services.close())

function arrange(config: object) {
  const host = testHost({ fetch })
  const parts = feature.build(host, v.parse(webSection.schema, config))
  const tool = parts.tools?.find(({ name }) => name === 'web_search') as Tool
  const run = async (input: object) => tool.run(v.parse(tool.input, input), toolContext(undefined, host.by))
  return { run, tool, parts }
}

describe.each(SERVICES)('%s', (search, { path, ...keys }) => {
  const config = () => ({ search, search_url: `${services.url}${path}`, ...keys })

  test('returns title, address and excerpt of each result that is a page', async () => {
    const { run, tool } = arrange(config())
    const answer = await run({ query: 'größe & more', limit: 4 })
    const [first, second, third] = answer.split('\n\n')
    expect(first).toBe('1. First page\nhttps://a.example/1\nsome words')
    expect(second).toMatch(/^2\. https:\/\/b\.example\/2\nhttps:\/\/b\.example\/2\nx{600}…$/)
    expect(third).toBe('3. Third\nhttps://c.example/3')
    expect(answer).not.toContain('javascript')
    const { query, json } = services.requests.at(-1) ?? expect.fail()
    expect(query.get('q') ?? (json as { query: string }).query).toBe('größe & more')
    expect(tool.available?.()).toBe(true)
  })

  test('returns no more results than asked for', async () => {
    expect((await arrange(config()).run({ query: 'x', limit: 1 })).split('\n\n')).toHaveLength(1)
  })

  test('passes on a failure that may pass', async () => {
    services.fail({ fault: 'status', status: 429 })
    await expect(arrange(config()).run({ query: 'x' })).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('fails for an answer that is not JSON', async () => {
    services.fail({ fault: 'garbage' })
    await expect(arrange(config()).run({ query: 'x' })).rejects.toMatchObject({ code: 'unavailable' })
  })
})

test.each(['brave', 'tavily'])('names %s when it refuses the key, and does not show the key', async (search) => {
  const { run } = arrange({ search, search_key: 'wrong-key-123456', search_url: `${services.url}/${search}` })
  const error = await run({ query: 'x' }).catch((reason: Error) => reason)
  expect(error).toMatchObject({ message: expect.stringMatching(/Brave Search|Tavily/) })
  expect(JSON.stringify(error)).not.toContain('wrong-key')
})

test.each<[object, string | undefined]>([
  [{}, undefined],
  [{ search: 'brave' }, 'Brave Search needs a key: set [tools.web] search_key'],
  [{ search: 'tavily' }, 'Tavily needs a key'],
  [{ search: 'searxng' }, 'SearXNG has no address of its own: set [tools.web] search_url'],
])('%j is not offered, and doctor says what is missing', async (config, missing) => {
  const { tool, parts, run } = arrange(config)
  expect(tool.available?.()).toBe(false)
  const [finding] = (await parts.check?.(new AbortController().signal)) ?? []
  expect(finding).toMatchObject(missing === undefined ? { status: 'ok' } : { status: 'fail', detail: expect.stringContaining(missing) })
  await expect(run({ query: 'x' })).rejects.toMatchObject({ code: 'unavailable' })
})
