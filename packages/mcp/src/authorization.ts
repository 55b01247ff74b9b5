/** The authorization at a server that asks for it by OAuth: the login of an operator, and tokens that are renewed by themselves. */
import { randomBytes } from 'node:crypto'
import {
  type AuthProvider,
  auth,
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
  type OAuthClientProvider,
  type OAuthDiscoveryState,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
} from '@modelcontextprotocol/client'
import { AppError, type Host } from '@sluice/sdk'
import type { ServerConfig } from './config.ts'
import { metadataFetch } from './metadata-fetch.ts'

/**
 * Where the browser ends after a login. Nothing listens there: the operator copies the address, so that the login also works when the
 * daemon runs on another machine than the browser.
 */
const REDIRECT_URL = 'http://localhost:33418/callback'

const PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

/** The stored data of a login, encrypted. */
interface Kept {
  readonly client?: StoredOAuthClientInformation | undefined
  readonly tokens?: StoredOAuthTokens | undefined
  readonly verifier?: string | undefined
  readonly discovery?: OAuthDiscoveryState | undefined
  /** The permissions that refused requests needed, with the ones that the client had then, separated by blanks. */
  readonly scope?: string | undefined
  /** The permissions that the last login asked for. */
  readonly asked?: string | undefined
}

export interface AuthorizationOptions {
  readonly server: string
  readonly url: string
  readonly oauth: ServerConfig['oauth']
  readonly host: Pick<Host, 'fetch' | 'publicFetch' | 'secrets'>
}

/** A login that waits for the address at which the browser ended. */
export interface BegunLogin {
  /** The address to open in a browser. */
  readonly url: URL
  /** Takes the address, and keeps the tokens. Throws `invalid_request` for an address of another login. */
  finish(address: string): Promise<void>
}

export class Authorization implements AuthProvider {
  readonly #options: AuthorizationOptions
  #renewal: Promise<void> | undefined

  constructor(options: AuthorizationOptions) {
    this.#options = options
  }

  async token(): Promise<string | undefined> {
    return (await this.#read()).tokens?.access_token
  }

  /** Renews the tokens. Concurrent requests share one renewal, because a token for renewal is often valid only once. */
  async onUnauthorized({ response }: { readonly response: Response }): Promise<void> {
    this.#renewal ??= this.#renew(response).finally(() => {
      this.#renewal = undefined
    })
    await this.#renewal
  }

  /** Notices that the server refused a request because its token lacks permissions, for the next login. */
  async noticeRefusal(response: Response): Promise<void> {
    const { error, scope } = extractWWWAuthenticateParams(response)
    if (response.status !== 403 || error !== 'insufficient_scope' || scope === undefined) return
    const { scope: needed, asked, tokens } = await this.#read()
    const scopes = [needed, asked, tokens?.scope, scope].flatMap((list) => list?.split(' ') ?? [])
    const wanted = { scope: [...new Set(scopes)].join(' ') }
    // Without a login, the next request gets a token with all of them.
    await this.#change(this.#isClient ? { ...wanted, tokens: undefined } : wanted)
  }

  /** Begins a login, which replaces an earlier one. Throws `invalid_request` for a server that needs none. */
  async begin(): Promise<BegunLogin> {
    const { url: serverUrl, server } = this.#options
    if (this.#isClient)
      throw new AppError('invalid_request', `The MCP server '${server}' needs no login, because its oauth.grant is "client_credentials"`)
    const challenge = extractWWWAuthenticateParams(await this.#unauthorized())
    await this.#change({ tokens: undefined, verifier: undefined })
    const fetchFn = await this.#discover(challenge.resourceMetadataUrl, true)
    const scope = (await this.#read()).scope ?? challenge.scope
    await this.#change({ asked: scope })
    const found = {
      ...(challenge.resourceMetadataUrl && { resourceMetadataUrl: challenge.resourceMetadataUrl }),
      ...(scope !== undefined && { scope }),
    }
    const state = randomBytes(16).toString('base64url')
    const opened = Promise.withResolvers<URL>()
    const provider = this.#provider(state, opened.resolve)
    await auth(provider, { serverUrl, fetchFn, ...found })
    return {
      url: await opened.promise,
      finish: async (address) => {
        const query = URL.parse(address.trim())?.searchParams
        const problem = query?.get('error_description') ?? query?.get('error')
        if (problem) throw new AppError('forbidden', `The login was refused: ${problem}`)
        const [code, iss] = [query?.get('code'), query?.get('iss')]
        if (!code || query?.get('state') !== state)
          throw new AppError('invalid_request', 'This is not the address at which the browser ended after this login')
        await auth(provider, { serverUrl, authorizationCode: code, ...(iss && { iss }), fetchFn, ...found })
      },
    }
  }

  forget(): Promise<void> {
    return this.#options.host.secrets.delete(this.#key)
  }

  /** Returns the answer to a request without a token, which says where the server's authorization is described. */
  #unauthorized(): Promise<Response> {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    return this.#options.host.fetch(this.#options.url, { method: 'POST', headers, body: PING, redirect: 'manual' })
  }

  async #renew(response: Response): Promise<void> {
    const { server, url: serverUrl } = this.#options
    const needsLogin = () => {
      throw new AppError('unauthorized', `The MCP server '${server}' asks for a login: run 'sluice mcp login ${server}'`)
    }
    const { tokens, scope: needed } = await this.#read()
    if (!this.#isClient && !tokens?.refresh_token) needsLogin()
    const { resourceMetadataUrl, scope: asked } = extractWWWAuthenticateParams(response)
    const scope = this.#isClient ? (needed ?? asked) : asked
    await auth(this.#provider('', needsLogin), {
      serverUrl,
      fetchFn: await this.#discover(resourceMetadataUrl, false),
      ...(resourceMetadataUrl && { resourceMetadataUrl }),
      ...(scope !== undefined && { scope }),
    })
  }

  /**
   * Finds out and keeps which authorization server gives the tokens, unless that is known, and returns the `fetch` for its requests.
   * A configured secret never goes to another one than the configured or first one. `isNew`: its description is read again.
   */
  async #discover(resourceMetadataUrl: URL | undefined, isNew: boolean): Promise<typeof fetch> {
    const { server, url, oauth, host } = this.#options
    const { discovery } = await this.#read()
    const known = discovery?.authorizationServerUrl
    const configured = [url, ...(oauth?.issuer === undefined ? [] : [oauth.issuer])]
    const fetchFn = metadataFetch({ server, configured, host })
    const isRight = known !== undefined && (oauth?.issuer === undefined || withoutSlash(known) === withoutSlash(oauth.issuer))
    if (isRight && !isNew) return fetchFn

    const resourceMetadata = await discoverOAuthProtectedResourceMetadata(
      url,
      resourceMetadataUrl && { resourceMetadataUrl },
      fetchFn,
    ).catch((error: unknown) => {
      if (error instanceof AppError || error instanceof TypeError) throw error
      return undefined
    })
    const first = oauth?.client_secret === undefined ? undefined : known
    const root = new URL('/', url).href
    const issuer = oauth?.issuer ?? first ?? resourceMetadata?.authorization_servers?.[0] ?? root
    if (!URL.canParse(issuer))
      throw new AppError('upstream', `The MCP server '${server}' names the authorization server ${JSON.stringify(issuer)}, an invalid URL`)
    const authorizationServerMetadata = await discoverAuthorizationServerMetadata(issuer, { fetchFn })
    // A server of an early revision of the protocol is its own authorization server, and describes nothing.
    if (!authorizationServerMetadata && new URL(issuer).origin !== new URL(url).origin)
      throw new AppError('upstream', `${issuer}, the authorization server of the MCP server '${server}', has no metadata`)
    await this.#change({
      discovery: {
        authorizationServerUrl: issuer,
        ...(resourceMetadataUrl && { resourceMetadataUrl: resourceMetadataUrl.href }),
        ...(resourceMetadata && { resourceMetadata }),
        ...(authorizationServerMetadata && { authorizationServerMetadata }),
      },
    })
    return fetchFn
  }

  /** True: the server admits the client itself, so that no person logs in. */
  get #isClient(): boolean {
    return this.#options.oauth?.grant === 'client_credentials'
  }

  #provider(state: string, open: (url: URL) => void): OAuthClientProvider {
    const { oauth } = this.#options
    const own = oauth?.client_id === undefined ? undefined : ownClient(oauth.client_id, oauth.client_secret?.reveal())
    const scope = oauth?.scope !== undefined && { scope: oauth.scope }
    return {
      ...(this.#isClient ? forClient(scope) : forPerson(scope)),
      state: () => state,
      clientInformation: async () => own ?? (await this.#read()).client,
      saveClientInformation: (client) => this.#change({ client }),
      tokens: async () => (await this.#read()).tokens,
      saveTokens: (tokens) => this.#change({ tokens }),
      redirectToAuthorization: open,
      saveCodeVerifier: (verifier) => this.#change({ verifier }),
      codeVerifier: async () => (await this.#read()).verifier ?? '',
      saveDiscoveryState: (discovery) => this.#change({ discovery }),
      discoveryState: async () => (await this.#read()).discovery,
      // Keeps the discovered authorization server, because the configured secret must not go to another one.
      invalidateCredentials: (what) =>
        this.#change({
          ...((what === 'all' || what === 'client') && { client: undefined }),
          ...((what === 'all' || what === 'tokens') && { tokens: undefined }),
          ...((what === 'all' || what === 'verifier') && { verifier: undefined }),
        }),
    }
  }

  get #key(): string {
    return `oauth.${this.#options.server}`
  }

  async #read(): Promise<Kept> {
    return JSON.parse((await this.#options.host.secrets.get(this.#key)) ?? '{}')
  }

  async #change(change: Kept): Promise<void> {
    await this.#options.host.secrets.set(this.#key, JSON.stringify({ ...(await this.#read()), ...change }))
  }
}

const withoutSlash = (url: string): string => url.replace(/\/$/, '')

type Scope = { readonly scope: string } | false

/** The members of a provider by which a person logs in. */
const forPerson = (scope: Scope) => ({
  redirectUrl: REDIRECT_URL,
  clientMetadata: {
    client_name: 'Sluice',
    redirect_uris: [REDIRECT_URL],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    ...scope,
  },
})

/** The members of a provider by which the client itself gets a token. */
const forClient = (scope: Scope) => ({
  redirectUrl: undefined,
  clientMetadata: {
    client_name: 'Sluice',
    redirect_uris: [],
    grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'client_secret_basic',
    ...scope,
  },
  prepareTokenRequest: (asked?: string) =>
    new URLSearchParams({ grant_type: 'client_credentials', ...(asked !== undefined && asked !== '' && { scope: asked }) }),
})

const ownClient = (client_id: string, client_secret: string | undefined): StoredOAuthClientInformation => ({
  client_id,
  ...(client_secret !== undefined && { client_secret }),
})
