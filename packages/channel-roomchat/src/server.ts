/** The configured server: its addresses, and the signatures and ids it uses. */
import { text } from '@sluice/kit/foreign-json'
import { withoutTrailing } from '@sluice/kit/without-trailing'
import type { Secret } from '@sluice/sdk'
import { hmacSha256, verifyHmac } from '@sluice/sdk/webhook'
import type { RoomchatConfig } from './config.ts'

export interface Server {
  readonly fetch: typeof fetch
  /** The normalised `base_url`. */
  readonly baseUrl: string
  /** The normalised URLs by which the server names itself: `base_url`, and `backend_url` if set. */
  readonly backends: readonly [string, ...string[]]
  /** The host of the server, with a port other than the default. Events do not name the bot they were sent to. */
  readonly account: string
  /** The secret of the bot, which signs requests in both directions; undefined when it is not set or blank. */
  readonly secret: Secret | undefined
  readonly appToken: Secret
}

/** Returns the server of a configuration. `plainFetch` sends the requests to it. */
export function serverOf({ base_url, backend_url, webhook_secret, app_token }: RoomchatConfig, plainFetch: typeof fetch): Server {
  const baseUrl = normaliseUrl(base_url) ?? base_url
  return {
    fetch: plainFetch,
    baseUrl,
    backends: backend_url === undefined ? [baseUrl] : [baseUrl, normaliseUrl(backend_url) ?? backend_url],
    account: new URL(base_url).host,
    secret: webhook_secret?.reveal().trim() ? webhook_secret : undefined,
    appToken: app_token,
  }
}

/** Lower-cases the host and removes the default port and trailing slashes. Returns undefined if the text cannot be parsed as a URL. */
export function normaliseUrl(text: string): string | undefined {
  const url = URL.parse(text)
  return url ? `${url.protocol}//${url.host}${withoutTrailing(url.pathname, '/')}` : undefined
}

/** Returns the hex HMAC-SHA256 over a random value and the signed part: the body of an event, or the text of a message. */
export const sign = (secret: string, random: string, signed: Uint8Array | string): string =>
  hmacSha256(secret, random, signed).toString('hex')

/** Compares a signature in constant time. Its hex digits may be in either case. */
export const isSigned = (secret: string, random: string, signed: Uint8Array | string, signature: string): boolean =>
  verifyHmac(secret, [random, signed], signature)

/** Returns whether the text can be the token of a room. A token contains no character that needs escaping in a URL. */
export const isRoom = (token: string): boolean => /^[\w-]{1,100}$/.test(token)

/** Returns an id, which old and new servers send as text or as number, as text; empty for any other value. */
export const idText = (value: unknown): string => (Number.isSafeInteger(value) ? String(value) : text(value).trim())
