/** The section `[tools.web]`. */
import { headerSecret, httpUrl, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { SEARCH_NAMES } from './search-services.ts'

export const webSection = {
  path: 'tools.web',
  schema: v.object({
    search: v.optional(v.pipe(v.picklist(SEARCH_NAMES), v.description('The search service; absent: there is no web_search'))),
    search_key: v.optional(v.pipe(headerSecret(), v.description('Key of the search service'))),
    search_url: v.optional(
      v.pipe(httpUrl(), v.description("Address of the search service (default: the service's own; searxng has none)")),
    ),
    fetch: v.optional(v.pipe(v.boolean(), v.description('Whether the model can fetch public pages')), true),
    response_bytes_max: v.optional(
      v.pipe(whole(1024, 10_485_760), v.description('The largest page in bytes; a larger one is an error')),
      4_194_304,
    ),
    timeout_secs: v.optional(v.pipe(whole(1, 120), v.description('Time limit of a search or a page in seconds')), 20),
  }),
} as const

export type WebConfig = v.InferOutput<typeof webSection.schema>
