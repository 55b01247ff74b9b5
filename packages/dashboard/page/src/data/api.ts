/** The calls of the gateway, typed from its OpenAPI document. */
import createClient from 'openapi-fetch'
import type { paths } from './api-types.ts'
import { BASE } from './base.ts'
import { signedOut } from './session.ts'

/** A header that no other web page can send without our consent, which each change needs. */
const HEADERS = { 'x-sluice-dashboard': '1' }

export const api = createClient<paths>({ baseUrl: BASE.href.replace(/\/$/, ''), headers: HEADERS })

let aheadMs = -Infinity

/** The time by the clock of the gateway, at most about a second too early. */
export const gatewayMs = (): number => Date.now() + (Number.isFinite(aheadMs) ? aheadMs : 0)

api.use({
  onResponse({ response }) {
    const atMs = Date.parse(response.headers.get('date') ?? '')
    // Each answer is older than its arrival: the least old one is the nearest to the truth.
    if (!Number.isNaN(atMs)) aheadMs = Math.max(aheadMs, atMs - Date.now())
    if (response.status === 401) signedOut()
  },
})

/** A refusal of the gateway, or a failure to reach it. */
export class ApiError extends Error {
  readonly status: number
  readonly code: string
  /** Further members of the answer. */
  readonly fields: Readonly<Record<string, unknown>>

  constructor(status: number, code: string, message: string, fields: Readonly<Record<string, unknown>> = {}) {
    super(message)
    this.status = status
    this.code = code
    this.fields = fields
  }
}

interface Outcome<Data> {
  readonly data?: Data
  readonly error?: unknown
  readonly response: Response
}

/** Returns the data of an answer, or throws an `ApiError`. */
export async function answered<Data>(outcome: Promise<Outcome<Data>>): Promise<Data> {
  const { data, error, response } = await outcome.catch((problem: unknown): never => {
    if (problem instanceof DOMException && problem.name === 'AbortError') throw problem
    throw new ApiError(0, 'unreachable', 'The gateway cannot be reached.')
  })
  if (response.ok) return data as Data
  const { error: message, code, ...fields } = (typeof error === 'object' && error !== null ? error : {}) as Record<string, unknown>
  throw new ApiError(
    response.status,
    typeof code === 'string' ? code : 'unknown',
    typeof message === 'string' ? message : `The gateway answered with status ${response.status}.`,
    fields,
  )
}

type JsonOf<Operation> = Operation extends { responses: { 200: { content: { 'application/json': infer Data } } } } ? Data : never
/** The paths with a `GET` that answers with JSON. */
export type GetPath = {
  [Path in keyof paths]: paths[Path] extends { get: infer Operation } ? ([JsonOf<Operation>] extends [never] ? never : Path) : never
}[keyof paths]
export type Got<Path extends GetPath> = paths[Path] extends { get: infer Operation } ? JsonOf<Operation> : never
type Parameters<Path extends GetPath> = paths[Path] extends { get: { parameters: infer P } } ? P : never
export type PathOf<Path extends GetPath> = Parameters<Path> extends { path: infer P } ? { readonly path: P } : { readonly path?: never }
export type QueryOf<Path extends GetPath> =
  Parameters<Path> extends { query?: infer Q } ? { readonly query?: Q } : { readonly query?: never }

/** Gets a JSON answer. */
export const get = <Path extends GetPath>(path: Path, params: PathOf<Path> & QueryOf<Path>, signal?: AbortSignal): Promise<Got<Path>> => {
  const call = api.GET as unknown as (path: string, init: object) => Promise<Outcome<Got<Path>>>
  return answered(call(path, { params, ...(signal && { signal }) }))
}

/** The data of the first page: the answers of five routes. */
export type Overview = Got<'/api/overview'>

export const getOverview = (signal?: AbortSignal): Promise<Overview> => get('/api/overview', {}, signal)
