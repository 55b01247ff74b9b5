/** Sends the requests of a plugin, only to the hosts that the operator granted. */
import { readAll } from '@sluice/kit'
import { parsedOrUndefined } from '@sluice/kit/foreign-json'
import { AppError, type Host } from '@sluice/sdk'
import * as v from 'valibot'

const RESPONSE_BYTES_MAX = 1_048_576
const HEADERS_MAX = 50

const schema = v.strictObject({
  method: v.optional(v.picklist(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']), 'GET'),
  url: v.pipe(v.string(), v.maxLength(8192)),
  headers: v.optional(v.pipe(v.record(v.string(), v.string()), v.maxEntries(HEADERS_MAX)), {}),
  body: v.optional(v.string()),
})

/**
 * Returns a function that sends the request `{"method", "url", "headers", "body"}` and returns `{"status", "headers", "body"}`, or
 * `{"error"}` when the request is refused or fails. Both are JSON. The function never rejects.
 */
export const pluginHttp =
  (publicFetch: Host['publicFetch'], granted: readonly string[]) =>
  async (request: string, signal: AbortSignal): Promise<string> => {
    try {
      const parsed = v.safeParse(schema, parsedOrUndefined(request))
      if (!parsed.success) throw new AppError('invalid_request', 'The request must have the form {"method", "url", "headers", "body"}')
      const { method, url, headers, body } = parsed.output
      const response = await publicFetch(url, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        signal,
        responseBytesMax: RESPONSE_BYTES_MAX,
        admit: ({ hostname }) => {
          if (!granted.includes(hostname)) throw new AppError('forbidden', `The plugin has no grant for '${hostname}'`)
        },
      })
      const text = new TextDecoder().decode(await readAll(response))
      return JSON.stringify({ status: response.status, headers: Object.fromEntries(response.headers), body: text })
    } catch (error) {
      return JSON.stringify({ error: error instanceof AppError ? error.message : 'The request failed' })
    }
  }
