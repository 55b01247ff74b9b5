/** The HTTP edge of errors: `{error, code, …}` for a refusal, a fixed text for everything else. */

import { type HideSecrets, noSecrets } from '@sluice/runtime'
import { AppError, ERRORS, type Logger } from '@sluice/sdk'
import { JSON_HEADERS } from './respond.ts'

const INTERNAL = JSON.stringify({ error: ERRORS.internal.title, code: 'internal' })

export interface ProblemLog {
  readonly log: Logger
  /** Masks secrets in the answer. */
  readonly hide: HideSecrets
}

/** The answer to anything that was thrown while a route was served. A bug goes to the log, and nothing of it to the client. */
export function problem(error: unknown, { log, hide }: ProblemLog, routeName: () => string): Response {
  if (!(error instanceof AppError)) {
    log.error('request failed', { route: routeName(), error })
    return new Response(INTERNAL, { status: 500, headers: JSON_HEADERS })
  }
  if (error.status >= 500) log.warn('request answered with an error', { route: routeName(), code: error.code, error })
  return refusal(error, {}, hide)
}

/** The answer to a refusal: its code and fields, `retry_after` with the header `Retry-After`, and `headers` in addition. */
export function refusal(
  { code, message, status, retryAfterSecs, fields }: AppError,
  headers: Readonly<Record<string, string>> = {},
  hide: HideSecrets = noSecrets,
): Response {
  const isLimit = code === 'rate_limited'
  const body: Record<string, unknown> = { ...hide({ ...fields, error: isLimit ? ERRORS.rate_limited.title : message }), code }
  const all: Record<string, string> = { ...JSON_HEADERS, ...headers }
  if (retryAfterSecs !== undefined) {
    body.retry_after = retryAfterSecs
    all['retry-after'] = String(retryAfterSecs)
  }
  if (code === 'unauthorized') all['www-authenticate'] = 'Bearer'
  return new Response(JSON.stringify(body), { status, headers: all })
}
