/** The API as commands call it: JSON in, JSON out, and the errors of the daemon as errors of the command. */
import { ByteBuffer, isPathSegment } from '@sluice/kit'
import { AppError, ERRORS, type ErrorCode } from '@sluice/sdk'
import { type ApiResponse, noAnswer, type Transport } from './transport.ts'

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export interface CallOptions {
  /** Members that are undefined are left out. */
  readonly query?: Query
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** What answers: the daemon of the data directory, the daemon at `--url`, or this process because no daemon runs. */
export type Answerer = 'daemon' | 'url' | 'in process'

export class Api {
  readonly answerer: Answerer
  readonly #transport: Transport

  constructor(answerer: Answerer, transport: Transport) {
    this.answerer = answerer
    this.#transport = transport
  }

  /** Returns the JSON of the answer. Throws the daemon's refusal as an `AppError` with its code and fields. */
  readonly get = <Answer>(path: string, query?: Query): Promise<Answer> => this.call('GET', path, { ...(query && { query }) })
  readonly post = <Answer>(path: string, body?: unknown, query?: Query): Promise<Answer> =>
    this.call('POST', path, { body, ...(query && { query }) })
  readonly put = <Answer>(path: string, body: unknown): Promise<Answer> => this.call('PUT', path, { body })
  readonly delete = <Answer>(path: string, query?: Query): Promise<Answer> => this.call('DELETE', path, { ...(query && { query }) })

  async call<Answer>(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const response = await this.send(method, path, options)
    const text = await textOf(response, method)
    const value = parsed(text)
    if (response.status >= 200 && response.status < 300 && value !== undefined) return value as Answer
    throw refusal(response.status, value)
  }

  /** Yields the lines of an answer of type `application/x-ndjson`, parsed. The method is GET unless given. */
  async *lines<Line>(path: string, { method = 'GET', ...options }: CallOptions & { readonly method?: string } = {}): AsyncGenerator<Line> {
    const response = await this.send(method, path, options)
    if (response.status !== 200) throw refusal(response.status, parsed(await textOf(response, method)))
    let rest = ''
    const decoder = new TextDecoder()
    for await (const bytes of piecesOf(response, method)) {
      const pieces = (rest + decoder.decode(bytes, { stream: true })).split('\n')
      rest = pieces.pop() ?? ''
      for (const line of pieces) yield JSON.parse(line) as Line
    }
    if (rest !== '') throw new AppError('unavailable', 'The answer of the daemon ended in the middle of a line')
  }

  /** Returns the answer whatever its status is. */
  send(method: string, path: string, { query = {}, body, headers, signal }: CallOptions = {}): Promise<ApiResponse> {
    return this.#transport.send({ method, path: path + queryText(query), body, signal, ...(headers && { headers }) })
  }
}

/** Yields the body of the answer to a request. Throws `unavailable` if the connection ends before it. */
async function* piecesOf({ body }: ApiResponse, method: string): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw error instanceof AppError ? error : noAnswer('The daemon', error, method)
  }
}

/** Joins the segments of a path, each of which is escaped. Throws `not_found` for a segment that would change the others. */
export const apiPath = (first: `/${string}`, ...segments: readonly (string | number)[]): string =>
  [first, ...segments.map(escapedSegment)].join('/')

/** A URL has no form for a segment that is empty or consists of dots, so nothing that the API serves has such a name. */
function escapedSegment(segment: string | number): string {
  if (!isPathSegment(String(segment))) throw new AppError('not_found', `'${segment}' is not the name of anything`)
  return encodeURIComponent(segment)
}

function queryText(query: Query): string {
  const values = Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)] as [string, string]]))
  return values.length === 0 ? '' : `?${new URLSearchParams(values)}`
}

export async function textOf(response: ApiResponse, method: string): Promise<string> {
  const read = new ByteBuffer()
  for await (const piece of piecesOf(response, method)) read.append(Buffer.from(piece))
  return read.bytes().toString('utf8')
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refusal(status: number, body: unknown): AppError {
  const { error, code, retry_after, ...fields } = (body ?? {}) as Record<string, unknown>
  if (typeof error !== 'string' || !isErrorCode(code))
    return new AppError('unavailable', `The answer ${status} is not in the form of Sluice: another server has this address`)
  return new AppError(code, error, { fields, ...(typeof retry_after === 'number' && { retryAfterSecs: retry_after }) })
}

const isErrorCode = (code: unknown): code is ErrorCode => typeof code === 'string' && Object.hasOwn(ERRORS, code)
