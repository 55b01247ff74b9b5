/** Classifies failures of model calls by the properties of the error, without importing the error classes of providers. */
import { AppError } from '@sluice/sdk'
import type { Scrub } from '../turn/scrub.ts'
import type { ModelReply } from './model-reply.ts'
import { plainBody, reportedError } from './reported-error.ts'
import { isTooBig, isTooLong, partThatFits } from './too-long.ts'

export interface ModelFailure {
  /** A phrase that follows the name of the provider, such as `answered HTTP 503: overloaded`. Has no secrets. */
  readonly reason: string
  /** The number of useful retries of the same model. */
  readonly repeat: 'often' | 'once' | 'never'
  /** `refused`: the provider refuses the credentials. `quota`: the account has none left. `fault`: an internal error, whose cause is only logged. */
  readonly kind: 'provider' | 'timeout' | 'refused' | 'quota' | 'fault'
  /** The delay that the provider asked for. */
  readonly retryAfterMs?: number | undefined
  /** Given when the request is longer than the window of the model: the part of its conversation that fits. */
  readonly fits?: number
  /** Whether the files of such a request may be the reason. */
  readonly isTooBig?: boolean
  /** The cause of an internal error, for the log. */
  readonly cause?: unknown
}

const REASON_CHARS_MAX = 300
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ETIMEDOUT',
  'UND_ERR_SOCKET',
  'UND_ERR_CONNECT_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
])
const TIMEOUT_CODES = new Set(['ETIMEDOUT', 'UND_ERR_CONNECT_TIMEOUT', 'UND_ERR_HEADERS_TIMEOUT', 'UND_ERR_BODY_TIMEOUT'])
const INVALID_REPLIES = new Set(['AI_JSONParseError', 'AI_TypeValidationError', 'AI_InvalidResponseDataError', 'AI_EmptyResponseBodyError'])

interface Parts {
  readonly name?: unknown
  readonly message?: unknown
  readonly code?: unknown
  readonly cause?: unknown
  readonly statusCode?: unknown
  readonly responseHeaders?: unknown
  readonly isRetryable?: unknown
}

/** What `byStatus` says of an answer. */
interface Answer {
  /** The phrase for the status. */
  readonly said: string
  readonly message: string
  readonly retryAfterMs?: number | undefined
}

const partsOf = (error: unknown): Parts => (typeof error === 'object' && error !== null ? error : {})

/** `nowMs` converts a `Retry-After` date to a delay. */
export function modelFailure(error: unknown, { nowMs, scrub }: { readonly nowMs: number; readonly scrub: Scrub }): ModelFailure {
  const { statusCode, responseHeaders, isRetryable, message } = partsOf(error)
  const said = typeof error === 'string' ? error : typeof message === 'string' ? message : ''
  const clean = (text: string) => scrub(text).replaceAll(/\s+/g, ' ').trim().slice(0, REASON_CHARS_MAX)
  const reason = clean(said)
  const code = networkCode(error)
  if (code) {
    return { reason: `could not be reached (${code})`, repeat: 'often', kind: TIMEOUT_CODES.has(code) ? 'timeout' : 'provider' }
  }
  if (error instanceof AppError) return { reason: `cannot be used: ${reason}`, repeat: 'never', kind: 'provider' }
  const reported = reportedError(error)
  const whole = reported?.message ?? plainBody(error) ?? said
  // Some services report errors under status 200.
  const status = typeof statusCode === 'number' && statusCode >= 300 ? statusCode : reported?.status
  const fits = isTooLong({ name: reported?.name ?? '', message: whole, status }) ? partThatFits(whole) : undefined
  const again = (failure: ModelFailure): ModelFailure => {
    if (fits !== undefined) return { ...failure, repeat: 'never', fits, isTooBig: isTooBig({ message: whole, status }) }
    return reported?.isFailedCall ? { ...failure, repeat: 'once' } : failure
  }
  if (reported?.isQuota || (status === 429 && isOutOfCredit(whole)))
    return { reason: `has no quota left: ${clean(whole)}`, repeat: 'never', kind: 'quota' }
  if (typeof statusCode === 'number' && statusCode >= 300) {
    const message = clean(reported?.message ?? said)
    return again(byStatus(statusCode, { said: `HTTP ${statusCode}`, message, retryAfterMs: retryAfterMs(responseHeaders, nowMs) }))
  }
  if (reported) {
    const { status, name, message } = reported
    if (status !== undefined) return again(byStatus(status, { said: `an error (${name})`, message: clean(message) }))
    return again({ reason: `answered an error: ${clean(message)}`, repeat: isRetryable === true ? 'often' : 'once', kind: 'provider' })
  }
  if (isInvalidReply(error)) {
    const isPage = /^\s*<(?:!doctype|html)\b/i.test(plainBody(error) ?? '')
    const what = isPage ? 'sent a web page in place of a reply: check base_url' : 'gave a reply that cannot be read'
    return { reason: what, repeat: 'once', kind: 'provider' }
  }
  const isOurs = error instanceof Error && isRetryable === undefined && !error.name.startsWith('AI_')
  if (isOurs) return { reason: 'failed unexpectedly', repeat: 'never', kind: 'fault', cause: error }
  return { reason: `failed: ${reason}`, repeat: isRetryable === true ? 'often' : 'never', kind: 'provider' }
}

/** What a server does not implement, and a version of HTTP that it does not support. */
const NOT_IMPLEMENTED: ReadonlySet<number> = new Set([501, 505])

function byStatus(status: number, { said, message, retryAfterMs }: Answer): ModelFailure {
  // Answers about a wrong key quote a part of the key.
  if (status === 401 || status === 403) return { reason: `refused our credentials (${said})`, repeat: 'never', kind: 'refused' }
  const isPassing = status === 408 || status === 409 || status === 429 || (status >= 500 && !NOT_IMPLEMENTED.has(status))
  const repeat = isPassing ? 'often' : 'never'
  return {
    reason: `answered ${said}${message && `: ${message}`}`,
    repeat,
    kind: status === 408 || status === 504 ? 'timeout' : 'provider',
    retryAfterMs,
  }
}

/** The words of services that use status 429 for an account without credit, which no later time has. */
const OUT_OF_CREDIT = [
  // Insufficient balance or no resource package, also in Chinese
  /\binsufficient (?:balance|credits?|funds)\b/i,
  /余额不足|欠费/,
  // You exceeded your current quota, please check your plan and billing details. OpenAI's whole text; Google adds which limit passes and when.
  /^You exceeded your current quota, please check your plan and billing details\.(?: For more information on this error, read the docs: \S{1,200})?$/,
  // You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.
  /\breached your specified API usage limits\b/i,
  // used all available credits; Your prepayment credits are depleted; You have reached your credit limit
  /\bused all available credits\b/i,
  /\bcredits are depleted\b/i,
  /\b(?:credit|spending) limit\b/i,
  // Quota exceeded for metric: generate_content_free_tier_requests, limit: 0
  /\bquota exceeded\b[^\n]{0,200}\blimit: 0\b/i,
]

const isOutOfCredit = (message: string): boolean => OUT_OF_CREDIT.some((words) => words.test(message))

const CAUSES_MAX = 8

/** Finds the first known network code in the chain of causes. */
function networkCode(error: unknown): string | undefined {
  let current = error
  for (let depth = 0; depth < CAUSES_MAX && current; depth++) {
    const { code, cause } = partsOf(current)
    if (typeof code === 'string' && NETWORK_CODES.has(code)) return code
    current = cause
  }
  return undefined
}

function isInvalidReply(error: unknown): boolean {
  let current = error
  for (let depth = 0; depth < CAUSES_MAX && current; depth++) {
    const { name, cause } = partsOf(current)
    if (typeof name === 'string' && INVALID_REPLIES.has(name)) return true
    current = cause
  }
  return false
}

const AMOUNT = /^\d{1,9}(?:\.\d+)?$/

function retryAfterMs(headers: unknown, nowMs: number): number | undefined {
  const { 'retry-after-ms': ms, 'retry-after': after } = partsOf(headers) as Record<string, unknown>
  if (typeof ms === 'string' && AMOUNT.test(ms)) return Math.ceil(Number(ms))
  if (typeof after !== 'string') return undefined
  if (AMOUNT.test(after)) return Math.ceil(Number(after) * 1000)
  // `Date.parse` reads almost any number as a date in the past.
  const atMs = /[a-z]/i.test(after) ? Date.parse(after) : Number.NaN
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

/** Describes the problem of a reply without an error; undefined for a good reply. */
export function judge({ text, calls, finish }: ModelReply): ModelFailure | undefined {
  if (finish === 'paused') return undefined
  if (finish === 'error') return { reason: 'reported an error in the middle of its reply', repeat: 'often', kind: 'provider' }
  if (finish === 'interrupted') return { reason: 'broke off its reply', repeat: 'often', kind: 'provider' }
  if (calls.length > 0 || text.trim() !== '') return undefined
  if (finish === 'content-filter') return { reason: 'withheld its reply (content filter)', repeat: 'never', kind: 'provider' }
  if (finish === 'refused') return { reason: 'refused to answer', repeat: 'never', kind: 'provider' }
  if (finish === 'length') return { reason: 'used up its output tokens before it answered', repeat: 'never', kind: 'provider' }
  return EMPTY
}

/** A reply without text and calls. */
export const EMPTY: ModelFailure = { reason: 'gave an empty reply', repeat: 'once', kind: 'provider' }

/** The kinds of refusals, by the kinds of failures that no retry changes. */
const REFUSALS: Readonly<Partial<Record<ModelFailure['kind'], string>>> = { refused: 'credentials', quota: 'quota', provider: 'request' }

/** Whether the provider refuses, so that the same request is refused again. */
const isRefusal = ({ kind, repeat }: ModelFailure): boolean => repeat === 'never' && REFUSALS[kind] !== undefined

/** Makes the error of a turn that no model answered, with the failure of each model in order. */
export function noModelAnswered(failures: readonly { readonly label: string; readonly failure: ModelFailure }[]): AppError {
  const code = failures.length > 0 && failures.every(({ failure }) => failure.kind === 'timeout') ? 'upstream_timeout' : 'upstream'
  const detail = failures.map(({ label, failure }) => `${label} ${failure.reason}`).join('; ')
  const waits = failures.flatMap(({ failure }) => failure.retryAfterMs ?? [])
  return new AppError(code, detail || 'No model is configured', {
    cause: failures.at(-1)?.failure.cause,
    isPassing: failures.some(({ failure }) => failure.repeat === 'often'),
    refusedFor: failures.every(({ failure }) => isRefusal(failure)) ? REFUSALS[failures.at(-1)?.failure.kind ?? 'fault'] : undefined,
    ...(waits.length > 0 && { retryAfterSecs: Math.max(1, Math.ceil(Math.min(...waits) / 1000)) }),
  })
}
