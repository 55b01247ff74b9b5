/** The platform's REST interface, version 10: one request at a time of the caller's, and its errors in our words. */
import { callProvider, type ProviderCall, withoutTrailing } from '@sluice/kit'
import { members, text } from '@sluice/kit/foreign-json'

export interface DiscordApi {
  readonly fetch: typeof fetch
  /** Without the version. */
  readonly url: string
  /** Empty: none is configured. */
  readonly token: string
}

export interface DiscordCall extends Pick<ProviderCall, 'method' | 'body' | 'signal' | 'accept' | 'timeoutMs'> {
  /** Below the version, with its leading slash. */
  readonly path: string
  /** False for what the platform proves by its path. */
  readonly isAuthorized?: boolean
}

/** The platform turns away clients that do not say what they are in this form. */
const USER_AGENT = 'DiscordBot (https://www.npmjs.com/package/@sluice/channel-discord, 0.1.0)'

/** Throws as `callProvider` does. */
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
