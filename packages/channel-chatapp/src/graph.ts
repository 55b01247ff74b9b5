/** Requests to the cloud API with our token, and its refusals told apart by their code, as the provider advises. */

import { callProvider, withoutTrailing } from '@sluice/kit'
import { type Members, members, text } from '@sluice/kit/foreign-json'
import { AppError, type ErrorCode, type Host } from '@sluice/sdk'
import type { ChatappConfig } from './config.ts'

export interface Graph {
  /** With its version, without a slash at the end. */
  readonly baseUrl: string
  readonly fetch: typeof fetch
  /** What proves that it is us; for the provider's hosts alone. */
  authorization(): Readonly<Record<string, string>>
  /** The JSON of a good answer; throws what `callProvider` throws. `path` comes after the version. */
  call(request: GraphRequest): Promise<unknown>
}

export interface GraphRequest {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly body?: object
  readonly signal: AbortSignal
}

/** Refusals that end by themselves or by a new token, whatever status they come with. */
const NOT_NOW: ReadonlyMap<unknown, ErrorCode> = new Map([
  [0, 'unavailable'],
  [190, 'unavailable'],
  [4, 'rate_limited'],
  [80007, 'rate_limited'],
  [130429, 'rate_limited'],
  [131056, 'rate_limited'],
])

export function createGraph(host: Pick<Host, 'fetch'>, { access_token, api_url, api_version }: ChatappConfig): Graph {
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
        const notNow = NOT_NOW.get(code)
        if (!notNow || !(error instanceof AppError)) throw error
        const { message, retryAfterSecs } = error
        throw new AppError(notNow, message, retryAfterSecs === undefined ? {} : { retryAfterSecs })
      }
    },
  }
  return graph
}

function explanationOf({ message, code, error_data }: Members): string {
  const said = [text(message), text(members(error_data).details)].filter((part) => part !== '').join(': ')
  return typeof code !== 'number' || said.includes(`#${code}`) ? said : `${said} (code ${code})`
}

/** The provider quotes a token that it cannot read. */
const withoutToken = (said: string, token: string): string => (token === '' ? said : said.replaceAll(token, '[secret]'))
