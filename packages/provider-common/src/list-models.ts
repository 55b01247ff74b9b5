/** Lists the models of an endpoint, with the context windows and prices that services add to the list of OpenAI. */

import { readUpTo } from '@sluice/kit'
import { type Members, members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { AppError, errorText, type OfferedModel } from '@sluice/sdk'
import type { ModelEndpoint } from './model-endpoint.ts'

/** The longest page; some services list thousands of models with their prices. */
const PAGE_BYTES_MAX = 8 * 1024 * 1024
const PAGES_MAX = 50

const TOKENS_PER_PRICE = 1_000_000

export interface ListOptions {
  readonly headers: Readonly<Record<string, string>>
  /** The query of the first page, such as `?limit=1000`. */
  readonly query?: string
  readonly signal: AbortSignal
}

/**
 * Returns the models at `<base URL>/models`, where OpenAI-compatible services, Anthropic and Google list them, of at most 50 pages. Throws
 * `unauthorized` for a rejected key, `upstream` for any other answer and `unavailable` without an answer.
 */
export async function listModels(endpoint: ModelEndpoint, { headers, query = '', signal }: ListOptions): Promise<OfferedModel[]> {
  const url = `${endpoint.baseUrl}/models${query}`
  const found = new Map<string, OfferedModel>()
  let after: Position | undefined
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page = await readPage(endpoint, after ? pageAfter(url, after) : url, { headers, signal })
    for (const model of page.models) found.set(model.id, model)
    if (!page.next || page.next.value === after?.value) break
    after = page.next
  }
  return [...found.values()]
}

/** Where a list continues, as a parameter of the query. */
interface Position {
  readonly name: 'after_id' | 'pageToken'
  readonly value: string
}

function pageAfter(url: string, { name, value }: Position): string {
  const next = new URL(url)
  next.searchParams.set(name, value)
  return next.href
}

async function readPage({ headers: extra, fetch }: ModelEndpoint, url: string, { headers, signal }: Omit<ListOptions, 'query'>) {
  const response = await fetch(url, { headers: { accept: 'application/json', ...headers, ...extra }, signal }).catch((error: unknown) => {
    throw new AppError('unavailable', `${url} cannot be reached: ${errorText(error)}`)
  })
  const { status } = response
  // Google reports a wrong key so: https://ai.google.dev/gemini-api/docs/troubleshooting
  const isWrongKey = status === 400 && (await readUpTo(response, PAGE_BYTES_MAX))?.toString().includes('API_KEY_INVALID') === true
  if (status === 401 || status === 403 || isWrongKey) throw new AppError('unauthorized', `${url} refuses the key with status ${status}`)
  if (!response.ok) throw new AppError('upstream', `${url} answers with status ${status}`)
  const body = await readUpTo(response, PAGE_BYTES_MAX).catch((error: unknown) => {
    throw new AppError('unavailable', `${url} broke off its answer: ${errorText(error)}`)
  })
  const json = parsedOrUndefined(body ?? '')
  const { data, models } = members(json)
  // Together answers with the list itself.
  const listed = Array.isArray(json) ? json : (data ?? models)
  if (!Array.isArray(listed)) throw new AppError('upstream', `${url} does not answer with a list of models`)
  return { models: listed.flatMap((entry) => offeredModel(members(entry)) ?? []), next: positionAfter(members(json)) }
}

/**
 * Anthropic: https://docs.anthropic.com/en/api/models-list. Google: https://ai.google.dev/api/models#method:-models.list.
 */
function positionAfter({ has_more, last_id, nextPageToken }: Members): Position | undefined {
  const after = has_more === true ? text(last_id) : ''
  if (after !== '') return { name: 'after_id', value: after }
  const token = text(nextPageToken)
  return token === '' ? undefined : { name: 'pageToken', value: token }
}

/**
 * The names of the window: `context_length` of OpenRouter and Together, `context_window` of Groq, `max_context_length` of Mistral,
 * `max_model_len` of vLLM, `max_input_tokens` of Anthropic, `inputTokenLimit` of Google, and `meta.n_ctx_train` of llama.cpp. Google lists models
 * that answer no messages too, and calls each `models/<id>`.
 */
function offeredModel(entry: Members): OfferedModel | undefined {
  const { supportedGenerationMethods: methods } = entry
  if (Array.isArray(methods) && !methods.includes('generateContent')) return undefined
  const id = text(entry.id) || text(entry.name).replace(/^models\//, '')
  if (id === '') return undefined
  const { context_length, context_window, max_context_length, max_model_len, max_input_tokens, inputTokenLimit, meta } = entry
  const windows = [
    context_length,
    context_window,
    max_context_length,
    max_model_len,
    max_input_tokens,
    inputTokenLimit,
    members(meta).n_ctx_train,
  ]
  const contextTokens = windows.map(amount).find((tokens) => tokens !== undefined && tokens > 0)
  const price = priceOf(members(entry.pricing))
  return { id, ...(contextTokens !== undefined && { contextTokens }), ...(price && { price }) }
}

/** OpenRouter tells the price of one token as text, and -1 where it varies; Together tells the price of a million tokens. */
function priceOf({ prompt, completion, input, output }: Members): OfferedModel['price'] {
  const perToken = [amount(prompt), amount(completion)]
  const [inputPrice, outputPrice] = prompt === undefined ? [amount(input), amount(output)] : perToken.map(forMillion)
  return inputPrice === undefined || outputPrice === undefined ? undefined : { input: inputPrice, output: outputPrice }
}

/** Rounds to a billionth of a dollar, because the product of two binary fractions is not exact. */
const forMillion = (usd: number | undefined): number | undefined =>
  usd === undefined ? undefined : Math.round(usd * TOKENS_PER_PRICE * 1e9) / 1e9

const amount = (value: unknown): number | undefined => {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) && number >= 0 ? number : undefined
}
