/** `[tools.http_request]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const httpSection = {
  path: 'tools.http_request',
  schema: v.object({
    allowed_domains: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.minLength(1))),
        v.description('example.com stands for it and its subdomains, * for any public host; empty: no request is made'),
      ),
      [],
    ),
    response_bytes_max: v.optional(v.pipe(whole(1024, 10_485_760), v.description('A longer answer is refused')), 1_048_576),
    timeout_secs: v.optional(v.pipe(whole(1, 300), v.description('From the request to the end of the answer, redirects included')), 30),
  }),
} as const

export type HttpConfig = v.InferOutput<typeof httpSection.schema>
