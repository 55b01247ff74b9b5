/** Reads the error that a provider reports in a body or in a frame of a stream, also under HTTP status 200. */

export interface ReportedError {
  /** The type or code that the provider gives the error; empty when it gives none. */
  readonly name: string
  readonly message: string
  /** The HTTP status that the provider uses for such an error; undefined if unknown. */
  readonly status: number | undefined
  /** Whether the account has no credit or quota left, which no retry changes. */
  readonly isQuota: boolean
  /** Whether the model failed to write a tool call, which it may do better when it is asked again. */
  readonly isFailedCall: boolean
}

/**
 * The statuses of error types. Sources: the error pages of Anthropic (https://docs.anthropic.com/en/api/errors), OpenAI
 * (https://platform.openai.com/docs/guides/error-codes), Google (https://ai.google.dev/gemini-api/docs/troubleshooting) and Mistral.
 */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ['invalid_request_error', 400],
  ['context_length_exceeded', 400],
  ['INVALID_ARGUMENT', 400],
  ['FAILED_PRECONDITION', 400],
  ['authentication_error', 401],
  ['invalid_api_key', 401],
  ['UNAUTHENTICATED', 401],
  ['billing_error', 402],
  ['permission_error', 403],
  ['PERMISSION_DENIED', 403],
  ['not_found_error', 404],
  ['model_not_found', 404],
  ['NOT_FOUND', 404],
  ['request_too_large', 413],
  ['rate_limit_error', 429],
  ['rate_limit_exceeded', 429],
  ['RESOURCE_EXHAUSTED', 429],
  ['api_error', 500],
  ['server_error', 500],
  ['internal_server_error', 500],
  ['InternalServerError', 500],
  ['INTERNAL', 500],
  ['UNAVAILABLE', 503],
  ['timeout_error', 504],
  ['DEADLINE_EXCEEDED', 504],
  ['overloaded_error', 529],
])

/** Codes of OpenAI, of Moonshot and of services that use them, which come with status 429 although they do not pass. */
const QUOTA = new Set([
  'insufficient_quota',
  'billing_hard_limit_reached',
  'billing_not_active',
  'exceeded_current_quota_error',
  'insufficient_balance',
])

/** Groq: https://console.groq.com/docs/tool-use, `Failed to call a function. Please adjust your prompt.` with status 400. */
const FAILED_CALL = 'tool_use_failed'

/** The length that is read of the words of a service behind a router, and of a body of another form. */
const BEHIND_CHARS_MAX = 2000

/** A longer body is not an error message. */
const BODY_CHARS_MAX = 65_536

type Members = Readonly<Record<string, unknown>>

/** Returns the error in a frame, in an error of the AI SDK, or in the body of its answer; undefined without one. */
export function reportedError(error: unknown): ReportedError | undefined {
  const { data, responseBody, value, name } = membersOf(error)
  for (const source of [data, parsed(responseBody), value]) {
    const found = errorIn(source)
    if (found) return found
  }
  // A frame is a plain object. Errors of JavaScript and of the AI SDK have a name.
  return name === undefined ? described(error) : undefined
}

/**
 * Finds the error in a body: in its member `error`, in the first element of a list as at Google's compatible endpoint, in the body itself
 * as at Cerebras and Mistral, or in `detail` as FastAPI writes it.
 */
function errorIn(body: unknown): ReportedError | undefined {
  const { error, choices, detail, base_resp, ...rest } = membersOf(Array.isArray(body) ? body[0] : body)
  if (error !== undefined && error !== null) return described(error)
  // MiniMax: https://platform.minimax.io/docs/api-reference/errorcode, under HTTP status 200 and with `choices: null`.
  const { status_code, status_msg } = membersOf(base_resp)
  if (status_code !== undefined && status_code !== 0) return described({ message: status_msg })
  if (choices !== undefined) return undefined
  return described(detail === undefined ? rest : { ...rest, message: detail })
}

function described(error: unknown): ReportedError | undefined {
  if (typeof error === 'string' && error !== '') return { name: '', message: error, status: undefined, isQuota: false, isFailedCall: false }
  const { message, type, code, status, statusCode, metadata } = membersOf(error)
  const said = textOf(message)
  if (said === undefined) return undefined
  // OpenRouter: https://openrouter.ai/docs/api-reference/errors, whose own message is only "Provider returned error".
  const behind = textOf(membersOf(metadata).raw)
  const names = [code, type, status].filter((name) => typeof name === 'string')
  const numbers = [statusCode, status, code].map(Number).filter((number) => Number.isInteger(number) && number >= 400 && number < 600)
  const known = names.find((name) => STATUSES.has(name))
  const number = numbers[0] ?? (known === undefined ? undefined : STATUSES.get(known))
  return {
    name: known ?? names[0] ?? String(number ?? ''),
    message: behind === undefined ? said : `${said}: ${behind.slice(0, BEHIND_CHARS_MAX)}`,
    status: number,
    isQuota: names.some((name) => QUOTA.has(name)),
    isFailedCall: names.includes(FAILED_CALL),
  }
}

/** Returns a text, or a member with members as JSON; undefined for anything else. */
function textOf(value: unknown): string | undefined {
  if (typeof value === 'object' && value !== null) return JSON.stringify(value)
  return typeof value === 'string' ? value : undefined
}

/** Returns the beginning of the body of an answer in which no error was found; undefined without a body. */
export function plainBody(error: unknown): string | undefined {
  const { responseBody } = membersOf(error)
  return typeof responseBody === 'string' && responseBody.trim() !== '' ? responseBody.slice(0, BEHIND_CHARS_MAX) : undefined
}

function parsed(body: unknown): unknown {
  if (typeof body !== 'string' || body.length > BODY_CHARS_MAX) return undefined
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const membersOf = (value: unknown): Members => (typeof value === 'object' && value !== null ? (value as Members) : {})
