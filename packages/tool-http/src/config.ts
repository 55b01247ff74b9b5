/** The section `[tools.http_request]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const httpSection = {
  path: 'tools.http_request',
  schema: v.object({
    allowed_domains: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1))),
        v.description(
          'Hosts that may be called: example.com includes its subdomains, * means any public host; an empty list allows no request',
        ),
      ),
      [],
    ),
    response_bytes_max: v.optional(
      v.pipe(whole(1024, 10_485_760), v.description('The largest response body in bytes; a larger one is an error')),
      1_048_576,
    ),
    timeout_secs: v.optional(v.pipe(whole(1, 300), v.description('Time limit of a request in seconds, redirects and body included')), 30),
  }),
} as const

export type HttpConfig = v.InferOutput<typeof httpSection.schema>
