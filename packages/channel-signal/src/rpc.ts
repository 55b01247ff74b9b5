/** Calls signal-cli by JSON-RPC over HTTP. Codes of errors follow its manual page signal-cli-jsonrpc(5). */
import { callProvider, urlUnder } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'
import { AppError } from '@sluice/sdk'

export interface Rpc {
  readonly fetch: typeof fetch
  readonly url: string
  /** The number of the bot. */
  readonly account: string
}

const USER_ERROR = -1
const UNTRUSTED_KEY = -4
const RATE_LIMIT = -5
/** The request was refused before it was executed; see the specification of JSON-RPC 2.0. */
const NOT_EXECUTED = [-32_600, -32_601, -32_602, -32_700]

/**
 * Resolves to the members of the result. Throws `AppError` as `Channel.send` does: an error of signal-cli's connection to the servers is
 * `upstream`, because the message may have been sent.
 */
export async function call(rpc: Rpc, method: string, params: object, signal: AbortSignal, answerBytesMax?: number) {
  const { json } = await callProvider({
    fetch: rpc.fetch,
    provider: 'signal-cli',
    url: urlUnder(rpc.url, '/api/v1/rpc'),
    method: 'POST',
    body: { jsonrpc: '2.0', id: '1', method, params: { account: rpc.account, ...params } },
    signal,
    ...(answerBytesMax !== undefined && { answerBytesMax }),
  })
  const { error, result } = members(json)
  if (error !== undefined) throw refusal(method, members(error))
  return members(result)
}

function refusal(method: string, { code, message }: { readonly code?: unknown; readonly message?: unknown }): AppError {
  const why = `signal-cli refused ${method}: ${text(message) || 'no reason given'} (code ${code})`
  if (code === RATE_LIMIT) return new AppError('rate_limited', why)
  if (code === UNTRUSTED_KEY) return new AppError('forbidden', why)
  if (code === USER_ERROR || NOT_EXECUTED.includes(Number(code))) return new AppError('invalid_request', why)
  return new AppError('upstream', why)
}
