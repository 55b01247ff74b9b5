/** The table of error codes with their HTTP status, title and exit code (docs/contract.md#http-api). */
export const ERRORS = {
  invalid_request: { status: 400, title: 'Invalid request', exit: 2 },
  unauthorized: { status: 401, title: 'Unauthorized', exit: 1 },
  forbidden: { status: 403, title: 'Forbidden', exit: 1 },
  not_found: { status: 404, title: 'Not found', exit: 1 },
  not_compiled: { status: 404, title: 'Not in this build', exit: 2 },
  method_not_allowed: { status: 405, title: 'Method not allowed', exit: 1 },
  conflict: { status: 409, title: 'Conflict', exit: 1 },
  too_large: { status: 413, title: 'Too large', exit: 2 },
  unsupported_type: { status: 415, title: 'Unsupported media type', exit: 2 },
  rate_limited: { status: 429, title: 'Too Many Requests', exit: 1 },
  share_used: { status: 429, title: 'Share used up', exit: 1 },
  aborted: { status: 499, title: 'Aborted', exit: 1 },
  internal: { status: 500, title: 'Internal error', exit: 1 },
  upstream: { status: 502, title: 'Upstream failed', exit: 1 },
  unavailable: { status: 503, title: 'Unavailable', exit: 1 },
  upstream_timeout: { status: 504, title: 'Upstream timed out', exit: 1 },
  data_newer: { status: 500, title: 'Data of a newer release', exit: 78 },
  config_invalid: { status: 500, title: 'Invalid configuration', exit: 78 },
} as const satisfies Record<string, { status: number; title: string; exit: number }>

export type ErrorCode = keyof typeof ERRORS

export interface ErrorOptions {
  readonly cause?: unknown
  /** The whole seconds after which a repeat may succeed. */
  readonly retryAfterSecs?: number
  /** True when the other side was not available or overloaded, so that a repeat may succeed after any number of failures. */
  readonly isPassing?: boolean
  /** True after an answer 503: the platform should not have executed the request, but a repeat may arrive twice. */
  readonly mayHaveArrived?: boolean
  /** The kind of a refusal, such as `quota`: no repetition of the same work can succeed. */
  readonly refusedFor?: string | undefined
  /** Further members of the error body, such as `feature` and `build` of `not_compiled`. */
  readonly fields?: Readonly<Record<string, unknown>>
}

/**
 * The error class for refusals that a caller sees. `message` is one sentence without secrets, tokens and bodies. Any other
 * thrown value is a bug: the log gets its cause, and the caller gets a fixed text.
 */
export class AppError extends Error {
  override readonly name = 'AppError'
  readonly code: ErrorCode
  readonly retryAfterSecs: number | undefined
  readonly isPassing: boolean
  readonly mayHaveArrived: boolean
  readonly refusedFor: string | undefined
  readonly fields: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, detail: string, options: ErrorOptions = {}) {
    const limit = Error.stackTraceLimit
    // A refusal has no stack, because collecting one costs more than the rest of the answer.
    if (ERRORS[code].status < 500) Error.stackTraceLimit = 0
    super(detail, options.cause === undefined ? undefined : { cause: options.cause })
    Error.stackTraceLimit = limit
    this.code = code
    this.retryAfterSecs = options.retryAfterSecs
    this.isPassing = options.isPassing ?? false
    this.mayHaveArrived = options.mayHaveArrived ?? false
    this.refusedFor = options.refusedFor
    this.fields = options.fields ?? {}
  }

  get status(): number {
    return ERRORS[this.code].status
  }
}

/** Returns the message of any thrown value, for logs. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  // `fetch` has its reason in the cause, which has a code but no message when a host has several addresses.
  const { message, cause } = error
  if (message !== 'fetch failed' || !(cause instanceof Error)) return message
  return cause.message || String((cause as NodeJS.ErrnoException).code ?? message)
}
