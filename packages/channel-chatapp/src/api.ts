/** Authorized requests to the cloud API, with its error codes mapped to ours. */
import { callProvider, withoutTrailing } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type ErrorCode, type Host } from '@sluice/sdk'
import type { CloudConfig } from './config.ts'

export interface Graph {
  /** The URL of the API with its version and without a slash at the end. */
  readonly baseUrl: string
  readonly fetch: typeof fetch
  /** Returns the header with the access token. Send it only to hosts of the platform. */
  authorization(): Readonly<Record<string, string>>
  /** Returns the JSON of a successful answer. Throws like `callProvider`. */
  call(request: GraphRequest): Promise<unknown>
}

export interface GraphRequest {
  readonly method: 'GET' | 'POST'
  /** The path after the version. */
  readonly path: string
  readonly body?: object | FormData
  readonly signal: AbortSignal
}

/** Error codes, under any HTTP status, that pass with time or with a new token. */
const TEMPORARY_CODES: ReadonlyMap<unknown, ErrorCode> = new Map([
  [0, 'unavailable'],
  [190, 'unavailable'],
  [4, 'rate_limited'],
  [80007, 'rate_limited'],
  [130429, 'rate_limited'],
  [131056, 'rate_limited'],
])

/** Creates the client for the API and token of a configuration. */
export function createGraph(host: Host, { access_token, api_url, api_version }: CloudConfig): Graph {
  const token = () => access_token.reveal().trim()
  const graph: Graph = {
    baseUrl: `${withoutTrailing(api_url, '/')}/${api_version}`,
    fetch: (...request) => host.fetch(...request),
    authorization: () => ({ authorization: `Bearer ${token()}` }),
    async call({ path, ...request }) {
      let code: unknown
      const explain = (answer: unknown) => {
        const error = members(members(answer).error)
        code = error.code
        return withoutToken(explanationOf(error), token())
      }
      try {
        const call = { ...request, fetch: graph.fetch, provider: 'chatapp', headers: graph.authorization(), explain }
        return (await callProvider({ ...call, url: `${graph.baseUrl}/${path}` })).json
      } catch (error) {
        const temporary = TEMPORARY_CODES.get(code)
        if (!temporary || !(error instanceof AppError)) throw error
        const { message, retryAfterSecs, mayHaveArrived } = error
        throw new AppError(temporary, message, { mayHaveArrived, ...(retryAfterSecs !== undefined && { retryAfterSecs }) })
      }
    },
  }
  return graph
}

function explanationOf({ message, code, error_data }: Members): string {
  const explanation = [text(message), text(members(error_data).details)].filter((part) => part !== '').join(': ')
  return typeof code !== 'number' || explanation.includes(`#${code}`) ? explanation : `${explanation} (code ${code})`
}

/** Removes the token from an explanation, because the platform quotes a token that it cannot parse. */
const withoutToken = (explanation: string, token: string): string =>
  token === '' ? explanation : explanation.replaceAll(token, '[secret]')
