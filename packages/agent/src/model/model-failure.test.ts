import { AppError, Secret } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { httpError, networkError } from '../testing/scripted-model.ts'
import { createScrub } from '../turn/scrub.ts'
import { modelFailure, noModelAnswered } from './model-failure.ts'

const nowMs = Date.UTC(2026, 0, 1)
const scrub = createScrub(() => [new Secret('my-own-key-4711')])
const failureOf = (error: unknown) => modelFailure(error, { nowMs, scrub })

describe('retries', () => {
  for (const status of [408, 409, 429, 500, 502, 503, 504, 529]) {
    test(`HTTP ${status}: often`, () => expect(failureOf(httpError(status))).toMatchObject({ repeat: 'often' }))
  }
  for (const status of [400, 401, 402, 403, 404, 410, 413, 422, 501, 505]) {
    test(`HTTP ${status}: never`, () => expect(failureOf(httpError(status))).toMatchObject({ repeat: 'never' }))
  }
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', 'UND_ERR_SOCKET']) {
    test(`${code}: often`, () => expect(failureOf(networkError(code))).toMatchObject({ repeat: 'often', kind: 'provider' }))
  }
  test('a plain fetch failure: often', () => {
    const error = new TypeError('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) })
    expect(failureOf(error)).toMatchObject({ repeat: 'often' })
  })
  test('an invalid reply: once', () => {
    const error = Object.assign(new Error('Invalid JSON response'), {
      name: 'AI_APICallError',
      statusCode: 200,
      isRetryable: false,
      cause: Object.assign(new Error('JSON parsing failed: <html>'), { name: 'AI_JSONParseError' }),
    })
    expect(failureOf(error)).toEqual({ reason: 'gave a reply that cannot be read', repeat: 'once', kind: 'provider' })
  })
  test('a web page: once, with what to check', () => {
    const error = {
      name: 'AI_APICallError',
      statusCode: 200,
      responseBody: '\n<!DOCTYPE html><p>Sign in',
      cause: { name: 'AI_JSONParseError' },
    }
    expect(failureOf(error)).toEqual({ reason: 'sent a web page in place of a reply: check base_url', repeat: 'once', kind: 'provider' })
  })
  test('an error inside a stream: by its status', () => {
    expect(failureOf({ message: 'Overloaded', isRetryable: true })).toEqual({
      reason: 'answered an error: Overloaded',
      repeat: 'often',
      kind: 'provider',
    })
    expect(failureOf({ message: 'slow down', statusCode: 429 })).toMatchObject({ reason: 'answered HTTP 429: slow down', repeat: 'often' })
  })
})

/** A body with status 200, as the AI SDK throws it. */
const inBody = (body: unknown) =>
  Object.assign(new Error('Invalid JSON response'), {
    name: 'AI_APICallError',
    statusCode: 200,
    responseBody: JSON.stringify(body),
    isRetryable: false,
    cause: Object.assign(new Error('no choices'), { name: 'AI_TypeValidationError' }),
  })

describe.each<[string, (error: unknown) => unknown]>([
  ['in a stream', (error) => error],
  ['under status 200', (error) => inBody({ error })],
])('an error %s', (_place, at) => {
  test.each([
    // OpenRouter, as in https://openrouter.ai/docs/api-reference/errors
    [{ code: 502, message: 'Provider is down' }, 'often', 'answered an error (502): Provider is down'],
    [{ code: 402, message: 'Insufficient credits' }, 'never', 'answered an error (402): Insufficient credits'],
    // Anthropic, as in https://docs.anthropic.com/en/api/errors
    [{ type: 'overloaded_error', message: 'Overloaded' }, 'often', 'answered an error (overloaded_error): Overloaded'],
    [{ type: 'authentication_error', message: 'invalid x-api-key' }, 'never', 'refused our credentials (an error (authentication_error))'],
    // OpenAI, as in https://platform.openai.com/docs/guides/error-codes
    [{ type: 'server_error', code: null, message: 'Sorry' }, 'often', 'answered an error (server_error): Sorry'],
    [
      { type: 'invalid_request_error', code: 'context_length_exceeded', message: 'Too long' },
      'never',
      'answered an error (context_length_exceeded): Too long',
    ],
    [{ type: 'insufficient_quota', code: 'insufficient_quota', message: 'No quota' }, 'never', 'has no quota left: No quota'],
    // Google, as in https://ai.google.dev/gemini-api/docs/troubleshooting
    [{ code: 503, status: 'UNAVAILABLE', message: 'Try later' }, 'often', 'answered an error (UNAVAILABLE): Try later'],
    // vLLM
    [
      { object: 'error', type: 'InternalServerError', code: 500, message: 'CUDA' },
      'often',
      'answered an error (InternalServerError): CUDA',
    ],
    ['model is loading', 'once', 'answered an error: model is loading'],
    [{ type: 'invented_later', message: 'New' }, 'once', 'answered an error: New'],
  ])('%o is repeated %s', (error, repeat, reason) => {
    expect(failureOf(at(error))).toMatchObject({ repeat, reason })
  })
})

test('a frame that the SDK cannot read keeps the error in it', () => {
  const error = Object.assign(new Error('Type validation failed'), { name: 'AI_TypeValidationError', value: { error: 'model is loading' } })
  expect(failureOf(error)).toMatchObject({ reason: 'answered an error: model is loading', repeat: 'once' })
})

test('a used-up quota is not retried, although its status is 429', () => {
  const error = { message: 'You exceeded your current quota', type: 'insufficient_quota', code: 'insufficient_quota', param: null }
  expect(failureOf(Object.assign(httpError(429, error.message), { responseBody: JSON.stringify({ error }) }))).toMatchObject({
    repeat: 'never',
    kind: 'quota',
    reason: 'has no quota left: You exceeded your current quota',
  })
})

// The error pages of Zhipu (code 1113), MiniMax (1008), xAI and Google AI Studio, and public issue threads
test.each([
  'Insufficient balance or no resource package. Please recharge.',
  'insufficient balance (1008)',
  'Your team has either used all available credits or reached its monthly spending limit. Please purchase more credits.',
  'Your prepayment credits are depleted.',
  'You have reached your credit limit. Please add credits.',
  '余额不足或无可用资源包,请充值。',
  'You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.',
  'You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.',
  'You exceeded your current quota. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 0, model: x',
])('an account without credit is not asked again, although its status is 429: %s', (message) => {
  const error = Object.assign(httpError(429, message), { responseBody: JSON.stringify({ error: { code: '1113', message } }) })
  expect(failureOf(error)).toMatchObject({ repeat: 'never', kind: 'quota' })
})

test.each([
  'You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: x, limit: 10. Please retry in 36.6s.',
  'Rate limit reached on tokens per day (TPD): Limit 100000, Used 99000, Requested 2000. Please try again in 14m24s. Need more tokens? Upgrade at https://console.groq.com/settings/billing',
  'Too many requests',
])('a limit of a time passes: %s', (message) => {
  const error = Object.assign(httpError(429, message), { responseBody: JSON.stringify({ error: { message } }) })
  expect(failureOf(error)).toMatchObject({ repeat: 'often' })
})

describe('the reason of a refused request', () => {
  test.each<[string, unknown, string]>([
    // https://inference-docs.cerebras.ai/api-reference/error-codes
    ['in the body itself', { message: 'Context is too long', type: 'invalid_request_error', code: 'x' }, 'Context is too long'],
    // https://github.com/crewAIInc/crewAI/issues/4405: vLLM before 0.10
    ['beside "object"', { object: 'error', message: 'Max length', type: 'BadRequestError', param: null, code: 400 }, 'Max length'],
    // https://github.com/vercel/ai/issues/6403: Google's compatible endpoint
    ['in a list', [{ error: { code: 400, message: 'Bad schema', status: 'INVALID_ARGUMENT' } }], 'Bad schema'],
    // https://fastapi.tiangolo.com/tutorial/handling-errors
    ['as a detail', { detail: 'Not Found' }, 'Not Found'],
    ['as details', { detail: [{ loc: ['body', 'x'], msg: 'missing' }] }, '[{"loc":["body","x"],"msg":"missing"}]'],
    // https://github.com/BerriAI/litellm/issues/8978: Mistral
    ['as a message of details', { object: 'error', message: { detail: [{ msg: 'no extras' }] } }, '{"detail":[{"msg":"no extras"}]}'],
  ])('is found %s', (_where, body, reason) => {
    const error = Object.assign(httpError(400, 'Bad Request'), { responseBody: JSON.stringify(body) })
    expect(failureOf(error)).toMatchObject({ reason: `answered HTTP 400: ${reason}`, repeat: 'never' })
  })
  test('is the text of the status when the body has none', () => {
    const error = Object.assign(httpError(502, 'Bad Gateway'), { responseBody: '<html>' })
    expect(failureOf(error).reason).toBe('answered HTTP 502: Bad Gateway')
  })
})

// https://github.com/groq/groq-typescript/issues/28
test('a tool call that the model failed to write is asked for once more', () => {
  const error = { message: 'Failed to call a function.', type: 'invalid_request_error', code: 'tool_use_failed', failed_generation: '<f' }
  expect(failureOf(Object.assign(httpError(400), { responseBody: JSON.stringify({ error }) }))).toMatchObject({ repeat: 'once' })
  expect(failureOf({ code: 'tool_use_failed', message: 'Failed to call a function.', type: 'invalid_request_error' })).toMatchObject({
    repeat: 'once',
  })
})

test('a provider that took too long counts as timed out', () => {
  expect(failureOf(networkError('UND_ERR_HEADERS_TIMEOUT'))).toMatchObject({ kind: 'timeout' })
  expect(failureOf(httpError(504))).toMatchObject({ kind: 'timeout' })
})

test('reads Retry-After as seconds, date and milliseconds', () => {
  const after = (headers: Record<string, string>) => failureOf(httpError(429, '', headers)).retryAfterMs
  expect(after({ 'retry-after': '7' })).toBe(7000)
  expect(after({ 'retry-after': new Date(nowMs + 9000).toUTCString() })).toBe(9000)
  expect(after({ 'retry-after': new Date(nowMs - 9000).toUTCString() })).toBe(0)
  expect(after({ 'retry-after-ms': '250', 'retry-after': '7' })).toBe(250)
  expect(after({ 'retry-after': '7.25' })).toBe(7250)
  expect(after({ 'retry-after-ms': '250.7', 'retry-after': '7' })).toBe(251)
  expect(after({ 'retry-after': 'soon' })).toBeUndefined()
  expect(after({ 'retry-after': '-1' })).toBeUndefined()
})

test('shows no key in a reason', () => {
  expect(failureOf(httpError(401, 'Incorrect API key provided: weird-key-12345678')).reason).toBe('refused our credentials (HTTP 401)')
  expect(failureOf(httpError(400, 'bad header x: my-own-key-4711')).reason).toBe('answered HTTP 400: bad header x: [redacted]')
  expect(failureOf(httpError(500, `a\nb${'c'.repeat(1000)}`)).reason.length).toBeLessThan(330)
})

test('keeps the cause of an internal error for the log only', () => {
  const fault = new TypeError("Cannot read properties of undefined (reading 'x')")
  expect(failureOf(fault)).toEqual({ reason: 'failed unexpectedly', repeat: 'never', kind: 'fault', cause: fault })
})

test('reports why a model cannot be loaded', () => {
  expect(failureOf(new AppError('config_invalid', 'api_key is missing')).reason).toBe('cannot be used: api_key is missing')
})

test('makes a failure of any thrown value', () => {
  for (const nothing of [undefined, null, {}, 0, Object.assign(new Error('x'), { cause: undefined, code: 7 })]) {
    expect(failureOf(nothing)).toMatchObject({ repeat: 'never' })
  }
})

test('ends the turn as timed out only when every model timed out', () => {
  const timeout = { label: 'a:1', failure: { reason: 'did not answer', repeat: 'never', kind: 'timeout' } } as const
  const refused = { label: 'b:2', failure: { reason: 'answered HTTP 429', repeat: 'often', kind: 'provider', retryAfterMs: 1500 } } as const
  expect(noModelAnswered([timeout])).toMatchObject({ code: 'upstream_timeout' })
  expect(noModelAnswered([timeout, refused])).toMatchObject({
    code: 'upstream',
    message: 'a:1 did not answer; b:2 answered HTTP 429',
    retryAfterSecs: 2,
  })
  expect(noModelAnswered([])).toMatchObject({ code: 'upstream', message: 'No model is configured' })
})
