/** `[tools.http_request]`. */
import { whole } from '@sluice/sdk'
import * as v from 'valibot'

export const httpSection = {
  path: 'tools.http_request',
  schema: v.object({
    /** `example.com` stands for it and its subdomains, `*` for any public host; empty: no request is made. */
    allowed_domains: v.optional(v.array(v.pipe(v.string(), v.minLength(1))), []),
    response_bytes_max: v.optional(whole(1024, 10_485_760), 1_048_576),
    timeout_secs: v.optional(whole(1, 300), 30),
  }),
} as const

export type HttpConfig = v.InferOutput<typeof httpSection.schema>
