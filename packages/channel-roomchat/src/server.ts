/** The server, and what we are to it. */
import type { Secret } from '@sluice/sdk'
import { plainUrl } from './base-url.ts'
import type { RoomchatConfig } from './config.ts'

export interface Server {
  /** In its plain form. */
  readonly baseUrl: string
  /** The names under which the server signs, each in its plain form: `baseUrl`, and `backend_url` where it is set. */
  readonly backends: readonly string[]
  /** No event names the bot it was posted to, so that the account is the server: its host, and its port if it is not the usual one. */
  readonly account: string
  /** Of the bot, for both directions. */
  readonly secret: Secret | undefined
  readonly appToken: Secret
}

export function serverOf({ base_url, backend_url, webhook_secret, app_token }: RoomchatConfig): Server {
  const baseUrl = plainUrl(base_url) ?? base_url
  return {
    baseUrl,
    backends: backend_url === undefined ? [baseUrl] : [baseUrl, plainUrl(backend_url) ?? backend_url],
    account: new URL(base_url).host,
    // A secret of blanks alone is none.
    secret: webhook_secret?.reveal().trim() ? webhook_secret : undefined,
    appToken: app_token,
  }
}
