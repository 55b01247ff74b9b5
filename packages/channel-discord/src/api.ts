/** Requests to Discord's REST API, version 10. */
import { callProvider, withoutTrailing } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'

export interface DiscordApi {
  readonly fetch: typeof fetch
  /** The base URL without the version. */
  readonly url: string
  /** Empty when no token is configured. */
  readonly token: string
}

export interface DiscordCall {
  readonly method: string
  /** Starts with a slash and follows the version in the URL. */
  readonly path: string
  /** Plain JSON or a form. */
  readonly body?: object
  readonly signal: AbortSignal
  /** Statuses that do not throw although they are not 2xx. */
  readonly accept?: readonly number[]
  /** The largest answer, for calls whose answers exceed the default of `callProvider`. */
  readonly answerBytesMax?: number
  /** Default 30,000. */
  readonly timeoutMs?: number
  /** False for a path that contains its own credential, such as the callback of an interaction. Default true. */
  readonly isAuthorized?: boolean
}

/** Discord rejects clients whose user agent does not have this form. */
const USER_AGENT = 'DiscordBot (https://www.npmjs.com/package/@sluice/channel-discord, 0.2.0)'

/** Makes one request. Throws as `callProvider` does. */
export const callDiscord = ({ fetch, url, token }: DiscordApi, { path, isAuthorized = true, ...call }: DiscordCall) =>
  callProvider({
    ...call,
    fetch,
    provider: 'discord',
    url: `${withoutTrailing(url, '/')}/v10${path}`,
    headers: { 'user-agent': USER_AGENT, ...(isAuthorized && { authorization: `Bot ${token}` }) },
    explain,
    waitSecs,
  })

function explain(json: unknown): string | undefined {
  const { message, code } = members(json)
  if (text(message) === '') return undefined
  return typeof code === 'number' && code !== 0 ? `${message} (${code})` : text(message)
}

function waitSecs(json: unknown): number | undefined {
  const { retry_after } = members(json)
  return typeof retry_after === 'number' && retry_after >= 0 && Number.isFinite(retry_after) ? Math.ceil(retry_after) : undefined
}
