/** Requests of the client-server API (https://spec.matrix.org/latest/client-server-api/). The token is sent in a header only. */
import { callProvider, pathSegment, withoutTrailing } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError } from '@sluice/sdk'

export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PUT'
  /** The segments after `/_matrix`; ids among them are encoded here. */
  readonly path: readonly string[]
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: object | string | Uint8Array<ArrayBuffer>
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
  /** Default 30,000. */
  readonly timeoutMs?: number
  readonly answerBytesMax?: number
  /** Sends no token, for the requests that log in. */
  readonly isAnonymous?: true
  /** Statuses of refusals whose answer is returned. */
  readonly accept?: readonly number[]
}

/** The standard error of a homeserver (client-server API, section 2, "Standard error response"). */
export interface Refusal {
  readonly code: string
  readonly text: string
  readonly isSoftLogout: boolean
}

/** Returns what the homeserver said when it refused a request; undefined for other errors. */
export const refusalOf = (error: unknown): Refusal | undefined =>
  error instanceof AppError && typeof error.cause === 'object' ? (error.cause as Refusal) : undefined

export const isRefused = (error: unknown, ...codes: readonly string[]): boolean => codes.includes(refusalOf(error)?.code ?? '')

/** True if the token is invalid, so that nothing works until there is another. */
export const isLoggedOut = (error: unknown): boolean => isRefused(error, 'M_UNKNOWN_TOKEN', 'M_MISSING_TOKEN', 'M_USER_DEACTIVATED')

export class MatrixApi {
  readonly fetch: typeof fetch
  readonly #root: string
  /** The token in use; undefined before a login. */
  token: string | undefined

  constructor(fetchApi: typeof fetch, homeserver: string) {
    this.fetch = fetchApi
    this.#root = `${withoutTrailing(homeserver, '/')}/_matrix`
  }

  url(path: readonly string[], query: ApiCall['query'] = {}): string {
    const given = Object.entries(query).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]))
    const search = given.length === 0 ? '' : `?${new URLSearchParams(given)}`
    return `${this.#root}/${path.map(pathSegment).join('/')}${search}`
  }

  authorization(): { readonly authorization?: string } {
    return this.token === undefined ? {} : { authorization: `Bearer ${this.token}` }
  }

  /**
   * Returns the members of the answer. Throws as `callProvider` does, with the `Refusal` as the cause if the homeserver gave one; an
   * invalid token is `unavailable`, because the operator can replace it.
   */
  async call({ path, query, isAnonymous, headers, ...call }: ApiCall): Promise<Members> {
    let refusal: Refusal | undefined
    try {
      const { json } = await callProvider({
        fetch: this.fetch,
        provider: 'the homeserver',
        url: this.url(path, query),
        headers: { ...(isAnonymous ? {} : this.authorization()), ...headers },
        explain(answer) {
          refusal = readRefusal(answer)
          return refusal && `${refusal.code}${refusal.text && ` (${refusal.text})`}`
        },
        waitSecs: (answer) => waitSecsOf(members(answer).retry_after_ms),
        ...call,
      })
      return members(json)
    } catch (error) {
      if (!(error instanceof AppError) || !refusal) throw error
      const { retryAfterSecs, mayHaveArrived } = error
      // A homeserver may also limit requests with another status than 429.
      const code = refusal.code === 'M_LIMIT_EXCEEDED' ? 'rate_limited' : isLoggedOutCode(refusal.code) ? 'unavailable' : error.code
      throw new AppError(code, error.message, { cause: refusal, mayHaveArrived, ...(retryAfterSecs !== undefined && { retryAfterSecs }) })
    }
  }

  /** Calls an endpoint of version 3 of the client API. */
  client(method: ApiCall['method'], path: readonly string[], call: Omit<ApiCall, 'method' | 'path'>): Promise<Members> {
    return this.call({ method, path: ['client', 'v3', ...path], ...call })
  }
}

const isLoggedOutCode = (code: string): boolean => code === 'M_UNKNOWN_TOKEN' || code === 'M_MISSING_TOKEN'

function readRefusal(answer: unknown): Refusal | undefined {
  const { errcode, error, soft_logout: soft } = members(answer)
  return text(errcode) === '' ? undefined : { code: text(errcode), text: text(error), isSoftLogout: soft === true }
}

const waitSecsOf = (ms: unknown): number | undefined => (typeof ms === 'number' && ms >= 0 ? Math.ceil(ms / 1000) : undefined)
