/** Sends one request to a platform's API. Its error codes tell whether the platform did not receive, refused or may have executed it. */
import { AppError, withoutSecrets } from '@sluice/sdk'
import { signalScope } from '../time/signal-scope.ts'
import { parsedOrUndefined } from './foreign-json.ts'
import { readUpTo } from './read-up-to.ts'
import { trackRequest } from './request-progress.ts'

export interface ProviderCall {
  readonly fetch: typeof fetch
  /** The name of the channel, for error texts. */
  readonly provider: string
  readonly url: string
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: object | string | Uint8Array<ArrayBuffer> | FormData
  readonly signal: AbortSignal
  /** Default 30,000. */
  readonly timeoutMs?: number
  /** The limit for an answer that may be large; a larger one is `too_large`. Default 1,048,576, beyond which it is `upstream`. */
  readonly answerBytesMax?: number
  /** Statuses besides 2xx that are returned and not thrown, such as a 404 that means "too old". */
  readonly accept?: readonly number[]
  /** Returns the platform's explanation in the answer of a refusal, for the operator. */
  explain?(json: unknown): string | undefined
  /** Returns the seconds to wait from the body of a refusal. A `Retry-After` header takes precedence. */
  waitSecs?(json: unknown): number | undefined
}

export interface ProviderAnswer {
  readonly status: number
  readonly headers: Headers
  /** `undefined` for an empty body. */
  readonly json: unknown
}

const TIMEOUT_MS = 30_000
const ANSWER_BYTES_MAX = 1_048_576
const PASSING_CODES: ReadonlySet<string> = new Set(['rate_limited', 'upstream', 'upstream_timeout'])
const UNCLEAR_CODES: ReadonlySet<string> = new Set(['upstream', 'upstream_timeout', 'aborted'])
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/
const EXPLANATION_CHARS_MAX = 300
const CREDENTIAL_HEADER = /auth|key|token|secret|cookie|signature/i
/** A part of a URL of this length may be a credential. Names of methods and most ids are shorter. */
const URL_TOKEN_CHARS_MIN = 20
/** Codes of failures before the request was written, for clients that do not report the progress of a request. */
const NOT_CONNECTED =
  /^(?:ERR_INVALID_URL|UND_ERR_INVALID_ARG|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_CERT\w+|ERR_SSL_WRONG_VERSION_NUMBER|CERT_\w+|UNABLE_TO_\w+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+|HOSTNAME_MISMATCH)$/

/**
 * Follows no redirect. Throws `AppError`: `rate_limited` and `unavailable` if the platform did not execute the request and it
 * may be repeated, `invalid_request` and `forbidden` if the platform refused it and would refuse it again, and `upstream`,
 * `upstream_timeout` and `aborted` if the platform may have executed it. A failure before the first byte was written is
 * `unavailable`, as is an answer 503 unless it speaks of a broken connection to the platform. A request that changes nothing may be repeated after every error except a refusal.
 */
export async function callProvider(call: ProviderCall): Promise<ProviderAnswer> {
  const { provider, timeoutMs = TIMEOUT_MS } = call
  using limit = signalScope([call.signal], timeoutMs)
  const { body, contentType } = encode(call.body)
  const headers = headersOf(call, contentType)
  const [sending, progress] = trackRequest(async () =>
    call.fetch(call.url, { method: call.method, headers, ...(body !== undefined && { body }), redirect: 'manual', signal: limit.signal }),
  )
  try {
    const response = await sending
    if (response.ok || call.accept?.includes(response.status)) {
      const text = await readText(response, call)
      return { status: response.status, headers: response.headers, json: parsed(response.ok ? text : unquoted(text, call), provider) }
    }
    // A refusal is certain even if its explanation does not arrive.
    throw refused(call, response, unquoted(await readText(response, call).catch(() => ''), call))
  } catch (error) {
    if (error instanceof AppError) throw error
    const { code, isConnecting } = networkFault(error)
    if (progress() === 'connecting') {
      throw new AppError('unavailable', `${provider} cannot be reached (${code || (limit.timedOut ? 'no connection in time' : 'cut off')})`)
    }
    if (limit.timedOut) throw new AppError('upstream_timeout', `${provider} did not answer within ${timeoutMs / 1000} s`)
    if (call.signal.aborted) throw new AppError('aborted', `The request to ${provider} was cut off`)
    if (isConnecting || NOT_CONNECTED.test(code)) throw new AppError('unavailable', `${provider} cannot be reached (${code})`)
    throw new AppError('upstream', `The connection to ${provider} broke${code && ` (${code})`}`)
  }
}

/**
 * For requests that change nothing, which may be repeated after an unclear outcome: turns `rate_limited`, `upstream` and
 * `upstream_timeout` into `unavailable`, and returns any other error unchanged.
 */
export function asUnavailable(error: unknown): unknown {
  if (!(error instanceof AppError) || !PASSING_CODES.has(error.code)) return error
  const { message, retryAfterSecs } = error
  return new AppError('unavailable', message, retryAfterSecs === undefined ? {} : { retryAfterSecs })
}

/**
 * For requests that come before a message, such as those for a token or for the upload of a file: whatever happened to one, nothing was sent.
 * Turns codes that mean "may have been sent" into `unavailable`, takes `mayHaveArrived` back, and returns any other error unchanged.
 */
export function nothingSent(error: unknown): unknown {
  if (!(error instanceof AppError) || !(error.mayHaveArrived || UNCLEAR_CODES.has(error.code))) return error
  const { message, retryAfterSecs, cause } = error
  const options = { ...(cause !== undefined && { cause }), ...(retryAfterSecs !== undefined && { retryAfterSecs }) }
  return new AppError(UNCLEAR_CODES.has(error.code) ? 'unavailable' : error.code, message, options)
}

/** Returns the whole seconds of a `Retry-After` header in either of its forms; undefined without one. */
export function retryAfterSecs(headers: Headers, nowMs: number): number | undefined {
  const value = headers.get('retry-after')?.trim()
  if (!value) return undefined
  if (/^\d+$/.test(value)) return Number(value)
  if (!HTTP_DATE.test(value)) return undefined
  const atMs = Date.parse(value)
  return Number.isNaN(atMs) ? undefined : Math.max(0, Math.ceil((atMs - nowMs) / 1000))
}

function encode(body: ProviderCall['body']): { body?: string | Uint8Array<ArrayBuffer> | FormData; contentType?: string } {
  if (body === undefined) return {}
  if (typeof body === 'string' || body instanceof Uint8Array || body instanceof FormData) return { body }
  return { body: JSON.stringify(body), contentType: 'application/json' }
}

/** A value that is not valid in a header comes from the configuration, so the operator must correct it. */
function headersOf({ provider, headers }: ProviderCall, contentType: string | undefined): Headers {
  try {
    return new Headers({ accept: 'application/json', ...(contentType && { 'content-type': contentType }), ...headers })
  } catch {
    throw new AppError('unavailable', `The request to ${provider} was not sent: a token or header contains a character that HTTP forbids`)
  }
}

/** Removes the credentials of the request from a refusal, which may quote them and is shown to the operator. */
const unquoted = (text: string, call: ProviderCall): string => withoutSecrets(text, credentialsOf(call))

function credentialsOf({ url, headers = {}, body }: ProviderCall): string[] {
  const inHeaders = Object.entries(headers).flatMap(([name, value]) => (CREDENTIAL_HEADER.test(name) ? [value, ...value.split(/\s+/)] : []))
  const inBody = typeof body === 'string' ? [...new URLSearchParams(body).values()] : []
  const path = url.split(/[/?&=#:]/).filter((part) => part.length >= URL_TOKEN_CHARS_MIN)
  return [...inHeaders, ...inBody, ...path, ...path.map(decoded)]
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

function refused({ provider, explain, waitSecs }: ProviderCall, { status, headers }: Response, text: string): AppError {
  const json = parsedOrUndefined(text)
  const explained = explain?.(json)?.slice(0, EXPLANATION_CHARS_MAX)
  const said = `${provider} answered ${status}${explained ? `: ${explained}` : ''}`
  const wait = retryAfterSecs(headers, Date.now()) ?? waitSecs?.(json)
  const options = wait === undefined ? {} : { retryAfterSecs: wait }
  if (status === 429) return new AppError('rate_limited', said, options)
  if (status === 503) return new AppError(isCutOff(text) ? 'upstream' : 'unavailable', said, { ...options, mayHaveArrived: true })
  // The platform did not execute the request, and the operator can replace the token.
  if (status === 401) return new AppError('unavailable', `${said} (is the token valid?)`, options)
  // Words of the platform show that it failed itself. Without them, a proxy may have lost the answer of an executed request; 502 and 504
  // always come from a proxy.
  if (status >= 500 && status !== 502 && status !== 504 && explained) return new AppError('unavailable', said, options)
  if (status === 408 || status >= 500) return new AppError('upstream', said, options)
  if (status >= 300 && status < 400) return new AppError('invalid_request', `${said}, a redirect, which is not followed`)
  return new AppError(status === 403 ? 'forbidden' : 'invalid_request', said)
}

/** Whether a proxy says that its connection to the platform broke, perhaps after the platform had executed the request. */
const isCutOff = (text: string): boolean =>
  /connection (?:was )?(?:reset|terminat|closed)|reset by peer/i.test(text) ||
  (/upstream/i.test(text) && /reset|disconnect|terminat|closed|ended/i.test(text))

async function readText(response: Response, { provider, answerBytesMax }: ProviderCall): Promise<string> {
  const bytesMax = answerBytesMax ?? ANSWER_BYTES_MAX
  const bytes = await readUpTo(response, bytesMax)
  if (bytes) return new TextDecoder().decode(bytes)
  throw new AppError(answerBytesMax ? 'too_large' : 'upstream', `The answer of ${provider} is larger than ${bytesMax} bytes`)
}

function parsed(text: string, provider: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new AppError('upstream', `The answer of ${provider} is not JSON`)
  }
}

/** Describes the cause of the `TypeError` that `fetch` throws. */
function networkFault(error: unknown): { readonly code: string; readonly isConnecting: boolean } {
  const cause: unknown = error instanceof Error ? (error.cause ?? error) : undefined
  const { code, syscall } = (cause instanceof Error ? cause : {}) as NodeJS.ErrnoException
  return {
    code: typeof code === 'string' ? code : '',
    isConnecting: syscall === 'connect' || (cause instanceof Error && cause.message === 'bad port'),
  }
}
