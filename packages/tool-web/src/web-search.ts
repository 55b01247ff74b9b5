/** The tool `web_search`: the best results of one search service. */
import { asUnavailable, callProvider } from '@sluice/kit'
import { AppError, defineTool, type Host, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { WebConfig } from './config.ts'
import { type Hit, SEARCH_SERVICES } from './search-services.ts'

const QUERY_CHARS_MAX = 400
const RESULTS = 5
const RESULTS_MAX = 20
const EXCERPT_CHARS_MAX = 600
const TITLE_CHARS_MAX = 200
const URL_CHARS_MAX = 2000

/** Returns what `[tools.web]` lacks for the search; undefined when it is complete, or sets no search. */
export function missingForSearch({ search, search_key, search_url }: WebConfig): string | undefined {
  if (search === undefined) return undefined
  const { needsKey, usualUrl, title } = SEARCH_SERVICES[search]
  if (needsKey && search_key === undefined) return `${title} needs a key: set [tools.web] search_key`
  if (usualUrl === undefined && search_url === undefined) return `${title} has no address of its own: set [tools.web] search_url`
  return undefined
}

export const webSearch = (host: Pick<Host, 'fetch'>, config: WebConfig): Tool =>
  defineTool({
    name: 'web_search',
    description: 'Searches the web. Returns titles, addresses and excerpts; web_fetch reads a page.',
    risk: 'read',
    decider: 'asker',
    egress: true,
    untrusted: ({ query }) => `web_search ${query}`,
    showsAddresses: true,
    available: () => config.search !== undefined && missingForSearch(config) === undefined,
    input: v.object({
      query: v.pipe(v.string(), v.regex(/\S/, 'is empty'), v.maxLength(QUERY_CHARS_MAX)),
      limit: v.optional(whole(1, RESULTS_MAX), RESULTS),
    }),
    async run({ query, limit }, { signal, report }) {
      const missing = missingForSearch(config)
      if (config.search === undefined || missing !== undefined)
        throw new AppError('unavailable', missing ?? 'No search service is set: an operator sets [tools.web] search')
      const { title, usualUrl = '', request, hits } = SEARCH_SERVICES[config.search]
      const question = { query, count: limit, url: config.search_url ?? usualUrl, key: config.search_key?.reveal() ?? '' }
      const { json } = await callProvider({
        ...request(question),
        fetch: host.fetch,
        provider: title,
        signal,
        timeoutMs: config.timeout_secs * 1000,
      }).catch((error: unknown) => {
        throw asUnavailable(error)
      })
      const found = hits(json)
        .filter(({ url }) => /^https?:\/\//i.test(url) && url.length <= URL_CHARS_MAX)
        .slice(0, limit)
      report?.({ data: JSON.stringify(found) })
      return found.length === 0 ? 'Nothing was found.' : found.map(hitText).join('\n\n')
    },
  })

const hitText = ({ title, url, text }: Hit, at: number): string =>
  [`${at + 1}. ${oneLine(title, TITLE_CHARS_MAX) || url}`, url, oneLine(text, EXCERPT_CHARS_MAX)].filter((line) => line !== '').join('\n')

const oneLine = (text: string, charsMax: number): string => {
  const line = text.trim().replace(/\s+/g, ' ')
  return line.length > charsMax ? `${line.slice(0, charsMax).toWellFormed()}…` : line
}
