/**
 * The search services on loopback, as their documentation describes requests and answers:
 * https://api-dashboard.search.brave.com/app/documentation/web-search/get-started,
 * https://docs.tavily.com/documentation/api-reference/endpoint/search and https://docs.searxng.org/dev/search_api.html.
 */
import { type FakeProvider, type ProviderReply, type ProviderRequest, startFakeProvider } from '@sluice/testkit/fake-provider'

export const SEARCH_KEY = 'k-0123456789abcdef'

export interface FakeHit {
  readonly title: string
  readonly url: string
  readonly text: string
}

/** Starts a fake of each service below a path of its own. */
export const startServices = (hits: readonly FakeHit[]): Promise<FakeProvider> =>
  startFakeProvider((request) => {
    if (request.path === '/brave') return brave(request, hits)
    if (request.path === '/tavily') return tavily(request, hits)
    if (request.path === '/searx/search') return searxng(request, hits)
    return { status: 404, body: {} }
  })

function brave({ method, headers, query }: ProviderRequest, hits: readonly FakeHit[]): ProviderReply {
  if (method !== 'GET') return { status: 405, body: {} }
  if (headers.get('x-subscription-token') !== SEARCH_KEY)
    return { status: 422, body: { type: 'ErrorResponse', error: { status: 422, code: 'SUBSCRIPTION_TOKEN_INVALID' } } }
  const count = Number(query.get('count') ?? 20)
  const results = hits.slice(0, count).map(({ title, url, text }) => ({ type: 'search_result', title, url, description: text }))
  return { status: 200, body: { type: 'search', query: { original: query.get('q') }, web: { type: 'search', results } } }
}

function tavily({ method, headers, json }: ProviderRequest, hits: readonly FakeHit[]): ProviderReply {
  const { query, max_results = 5 } = (json ?? {}) as { query?: string; max_results?: number }
  if (method !== 'POST' || typeof query !== 'string') return { status: 400, body: { detail: { error: 'Query is missing.' } } }
  if (headers.get('authorization') !== `Bearer ${SEARCH_KEY}`)
    return { status: 401, body: { detail: { error: 'Unauthorized: missing or invalid API key.' } } }
  const results = hits.slice(0, max_results).map(({ title, url, text }, at) => ({ title, url, content: text, score: 1 - at / 10 }))
  return { status: 200, body: { query, results, response_time: 0.4 } }
}

function searxng({ query }: ProviderRequest, hits: readonly FakeHit[]): ProviderReply {
  // An instance that does not list json among its formats answers 403.
  if (query.get('format') !== 'json') return { status: 403 }
  const results = hits.map(({ title, url, text }) => ({ title, url, content: text, engine: 'example' }))
  return { status: 200, body: { query: query.get('q'), number_of_results: hits.length, results, answers: [], suggestions: [] } }
}
