/** The search services: how each is asked, and how its answer is read. */
import { list, members, text } from '@sluice/kit/foreign-json'

export interface Hit {
  readonly title: string
  readonly url: string
  readonly text: string
}

export interface Question {
  readonly query: string
  readonly count: number
  readonly url: string
  readonly key: string
}

export interface SearchService {
  /** As people know it. */
  readonly title: string
  /** Absent where each operator has an address of its own. */
  readonly usualUrl?: string
  readonly needsKey: boolean
  request(question: Question): {
    readonly url: string
    readonly method: 'GET' | 'POST'
    readonly headers: Readonly<Record<string, string>>
    readonly body?: object
  }
  hits(answer: unknown): readonly Hit[]
}

const hitOf = (title: unknown, url: unknown, excerpt: unknown): Hit => ({ title: text(title), url: text(url), text: text(excerpt) })

export const SEARCH_NAMES = ['brave', 'tavily', 'searxng'] as const

export const SEARCH_SERVICES: Readonly<Record<(typeof SEARCH_NAMES)[number], SearchService>> = {
  // https://api-dashboard.search.brave.com/app/documentation/web-search/get-started
  brave: {
    title: 'Brave Search',
    usualUrl: 'https://api.search.brave.com/res/v1/web/search',
    needsKey: true,
    request: ({ query, count, url, key }) => ({
      url: withQuery(url, { q: query, count: String(count), text_decorations: 'false' }),
      method: 'GET',
      headers: { accept: 'application/json', 'x-subscription-token': key },
    }),
    hits: (answer) =>
      list(members(members(answer).web).results)
        .map(members)
        .map(({ title, url, description }) => hitOf(title, url, description)),
  },
  // https://docs.tavily.com/documentation/api-reference/endpoint/search
  tavily: {
    title: 'Tavily',
    usualUrl: 'https://api.tavily.com/search',
    needsKey: true,
    request: ({ query, count, url, key }) => ({
      url,
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: { query, max_results: count },
    }),
    hits: (answer) =>
      list(members(answer).results)
        .map(members)
        .map(({ title, url, content }) => hitOf(title, url, content)),
  },
  // https://docs.searxng.org/dev/search_api.html
  searxng: {
    title: 'SearXNG',
    needsKey: false,
    request: ({ query, url, key }) => ({
      url: withQuery(`${url.replace(/\/(?:search)?$/, '')}/search`, { q: query, format: 'json' }),
      method: 'GET',
      headers: { accept: 'application/json', ...(key !== '' && { authorization: `Bearer ${key}` }) },
    }),
    hits: (answer) =>
      list(members(answer).results)
        .map(members)
        .map(({ title, url, content }) => hitOf(title, url, content)),
  },
}

const withQuery = (url: string, values: Readonly<Record<string, string>>): string => `${url}?${new URLSearchParams(values)}`
