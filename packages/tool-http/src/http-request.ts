/** The tool `http_request`: one request to an allowed host, redirects included; see `docs/contract.md#tools`. */

import { readAll, signalScope } from '@sluice/kit'
import { AppError, defineTool, type Host, isAllowedDomain, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { HttpConfig } from './config.ts'
import { bodyIfText, responseText } from './response-text.ts'

const URL_CHARS_MAX = 8192
const BODY_CHARS_MAX = 1_048_576
const HEADERS_MAX = 50

const input = v.object({
  url: v.pipe(v.string(), v.minLength(1), v.maxLength(URL_CHARS_MAX), v.description('The full URL, http or https')),
  method: v.optional(v.picklist(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']), 'GET'),
  headers: v.optional(v.pipe(v.record(v.string(), v.string()), v.maxEntries(HEADERS_MAX), v.description('Additional request headers')), {}),
  body: v.optional(v.pipe(v.string(), v.maxLength(BODY_CHARS_MAX), v.description('The request body'))),
})

export const httpRequest = (host: Host, config: HttpConfig): Tool => {
  const isAllowed = (url: URL | null): boolean => url !== null && isAllowedDomain(url.hostname, config.allowed_domains)
  const admit = (url: URL) => {
    if (!isAllowed(url)) throw new AppError('forbidden', `The host '${url.hostname}' is not in allowed_domains under [tools.http_request]`)
  }
  const check = (url: string) => {
    if (config.allowed_domains.length === 0) {
      throw new AppError('forbidden', 'No host is allowed: allowed_domains under [tools.http_request] is empty')
    }
    const parsed = URL.parse(url)
    if (parsed) admit(parsed)
  }
  return defineTool({
    name: 'http_request',
    description: 'Makes one HTTP request to a public host that the operator allows. Returns the status, some headers and the body as text.',
    input,
    // An allowed domain is the operator's consent to read from it, not to change data there.
    risk: ({ url, method, body }) =>
      (method === 'GET' || method === 'HEAD') && body === undefined && isAllowed(URL.parse(url)) ? 'read' : 'execute',
    decider: 'asker',
    egress: true,
    untrusted: ({ url }) => `http_request ${url}`,
    available: () => config.allowed_domains.length > 0,
    precheck: ({ url }) => check(url),
    async run({ url, method, headers, body }, context) {
      let requests = 0
      const readNothing = (error: unknown): never => {
        // A server may choose the address that a later request is refused for.
        if (requests <= 1 && error instanceof AppError && error.code === 'forbidden') context.report?.({ readNothing: true })
        throw error
      }
      try {
        check(url)
      } catch (error) {
        readNothing(error)
      }
      using limit = signalScope([context.signal], config.timeout_secs * 1000, host.clock)
      const response = await host
        .publicFetch(url, {
          method,
          headers,
          ...(body === undefined ? {} : { body }),
          signal: limit.signal,
          responseBytesMax: config.response_bytes_max,
          admit(target) {
            requests++
            admit(target)
          },
        })
        .catch(readNothing)
      const bytes = await readAll(response)
      const data = bodyIfText(response.headers, bytes)
      context.report?.({ ...(response.status >= 400 && { failed: true }), ...(data !== undefined && { data }) })
      return responseText(response, bytes, url)
    },
  })
}
