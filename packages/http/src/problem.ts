/** The HTTP edge of errors: `{error, code, …}` for refusals, a fixed text for everything else (§7, decisions "Error body"). */

import { type HideSecrets, noSecrets } from '@sluice/runtime'
import { AppError, ERRORS, type Logger } from '@sluice/sdk'
import { JSON_HEADERS } from './security-headers.ts'

const INTERNAL = JSON.stringify({ error: ERRORS.internal.title, code: 'internal' })

/** An answer that is not sent yet. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

export interface ProblemDeps {
  readonly log: Logger
  /** Masks secrets in the answer. */
  readonly hide?: HideSecrets
}

/** The answer to a refusal, or to a bug, which goes to the log with where it happened. Nothing of a bug is shown. */
export function answerTo(error: unknown, { log, hide = noSecrets }: ProblemDeps, where: string): Answer {
  if (!(error instanceof AppError)) {
    log.error('a request failed', { route: where, error })
    return { status: 500, headers: JSON_HEADERS, body: INTERNAL }
  }
  if (error.status >= 500) log.warn('a request was answered with an error', { route: where, code: error.code, error })
  return refused(error, {}, hide)
}

const responseOf = ({ body, status, headers }: Answer): Response => new Response(body, { status, headers })

export const problem = (error: unknown, deps: ProblemDeps, where: string): Response => responseOf(answerTo(error, deps, where))

export const refusal = (error: AppError, more: Readonly<Record<string, string>> = {}): Response => responseOf(refused(error, more))

function refused(
  { code, message, status, retryAfterSecs, fields }: AppError,
  more: Readonly<Record<string, string>> = {},
  hide: HideSecrets = noSecrets,
): Answer {
  const isLimit = code === 'rate_limited'
  const body: Record<string, unknown> = { ...hide({ ...fields, error: isLimit ? ERRORS.rate_limited.title : message }), code }
  const headers: Record<string, string> = { ...JSON_HEADERS, ...more }
  if (retryAfterSecs !== undefined) {
    body.retry_after = retryAfterSecs
    headers['retry-after'] = String(retryAfterSecs)
  }
  if (code === 'unauthorized') headers['www-authenticate'] = 'Bearer'
  return { status, headers, body: JSON.stringify(body) }
}
