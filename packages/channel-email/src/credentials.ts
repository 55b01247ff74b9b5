/** How the channel proves who it is to the servers: a password, or access tokens of OAuth (XOAUTH2). */
import { AccessToken, tokenRefused } from '@sluice/mail-common'
import type { Host, Secret } from '@sluice/sdk'
import type { OAuthClient, Settings } from './settings.ts'

/** One login. */
export type Login =
  | { readonly kind: 'password'; readonly username: string; readonly secret: Secret }
  | { readonly kind: 'token'; readonly username: string; readonly secret: Secret }

/** The name of the secret that holds the refresh token which the service issued last. */
const STORED_TOKEN = 'refresh-token'

export class Credentials {
  readonly #settings: Settings
  readonly #token: AccessToken | undefined

  constructor(host: Pick<Host, 'fetch' | 'clock' | 'secrets'>, settings: Settings) {
    this.#settings = settings
    const { oauth } = settings
    this.#token = oauth && tokenOf(host, oauth)
  }

  /** Throws `unavailable` when no access token can be obtained. */
  async login(signal: AbortSignal): Promise<Login> {
    const { username, password } = this.#settings
    if (this.#token) return { kind: 'token', username, secret: await this.#token.current(signal) }
    if (password) return { kind: 'password', username, secret: password }
    throw tokenRefused('email has no credentials: set password, or refresh_token with client_id')
  }

  /** Returns the login of the SMTP server; undefined if it takes mails without one. Throws `unavailable` as `login` does. */
  async smtpLogin(signal: AbortSignal): Promise<Login | undefined> {
    const { smtpLogin } = this.#settings
    if (smtpLogin === 'none') return undefined
    return smtpLogin === 'mailbox' ? this.login(signal) : { kind: 'password', ...smtpLogin }
  }

  /** Returns a login with another token than the refused one; undefined when only the operator can help. */
  async another(refused: Login, signal: AbortSignal): Promise<Login | undefined> {
    const secret = refused.kind === 'token' ? await this.#token?.replace(refused.secret, signal) : undefined
    return secret && { ...refused, secret }
  }
}

/** The operator replaces a refresh token by configuring another one, so a stored one counts only for the token it came from. */
function tokenOf({ fetch, clock, secrets }: Pick<Host, 'fetch' | 'clock' | 'secrets'>, oauth: OAuthClient): AccessToken {
  const configured = oauth.refreshToken.reveal()
  const newest = async (): Promise<string> => {
    const stored = (await secrets.get(STORED_TOKEN)) ?? ''
    const [origin, token] = stored.split('\n', 2)
    return origin === configured && token ? token : configured
  }
  return new AccessToken({
    host: { fetch, clock },
    service: 'email',
    tokenUrl: oauth.tokenUrl,
    missing: 'refresh_token with client_id',
    async form() {
      const form = { grant_type: 'refresh_token', client_id: oauth.clientId, refresh_token: await newest() }
      const secret = oauth.clientSecret?.reveal()
      return new URLSearchParams({ ...form, ...(secret && { client_secret: secret }), ...(oauth.scope && { scope: oauth.scope }) })
    },
    onRefreshToken: (token) => secrets.set(STORED_TOKEN, `${configured}\n${token}`),
  })
}

/** The initial response of SASL PLAIN (RFC 4616). */
export const plainResponse = ({ username, secret }: Login): string => Buffer.from(`\0${username}\0${secret.reveal()}`).toString('base64')

/** The initial response of XOAUTH2, as Google and Microsoft document it. */
export const tokenResponse = ({ username, secret }: Login): string =>
  Buffer.from(`user=${username}\x01auth=Bearer ${secret.reveal()}\x01\x01`).toString('base64')
