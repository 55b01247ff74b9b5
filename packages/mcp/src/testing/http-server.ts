/** An MCP server on loopback that speaks streamable HTTP, with its authorization server. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'
import { FakeServer } from './fake-server.ts'

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

export class HttpServer {
  /** Answers the requests of the protocol. */
  readonly mcp = new FakeServer()
  readonly seen: Seen[] = []
  /** The tokens that are accepted; undefined: no authorization is asked for. */
  accepted: Set<string> | undefined
  /** The valid tokens for a renewal. Each is accepted once. */
  readonly renewals = new Set<string>()
  /** The permissions that the refusal of a request without a valid token names. */
  scope = ''
  /** Answers a request in place of the server. */
  instead: ((request: Seen, response: ServerResponse) => boolean) | undefined
  url = ''
  close = async () => {}
  #count = 0

  async listen(): Promise<this> {
    const listening = await listenOnLoopback(createServer((request, response) => void this.#serve(request, response)))
    this.url = listening.url
    this.close = listening.close
    return this
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = ''
    for await (const chunk of incoming) body += chunk
    const { pathname } = new URL(incoming.url ?? '/', this.url)
    const seen = { method: incoming.method ?? '', path: pathname, headers: incoming.headers, body }
    this.seen.push(seen)
    if (this.instead?.(seen, response)) return
    const send = (status: number, value?: unknown, headers: Record<string, string> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(value === undefined ? undefined : JSON.stringify(value))
    }
    switch (pathname) {
      case '/mcp':
        return this.#mcp(seen, send)
      case '/.well-known/oauth-protected-resource/mcp':
        return send(200, { resource: `${this.url}/mcp`, authorization_servers: [this.url] })
      case '/.well-known/oauth-authorization-server':
        return send(200, {
          issuer: this.url,
          authorization_endpoint: `${this.url}/authorize`,
          token_endpoint: `${this.url}/token`,
          registration_endpoint: `${this.url}/register`,
          response_types_supported: ['code'],
          code_challenge_methods_supported: ['S256'],
          token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
        })
      case '/register':
        return send(201, { ...JSON.parse(body), client_id: 'registered' })
      case '/token':
        return this.#token(new URLSearchParams(body), incoming.headers.authorization, send)
      default:
        return send(404)
    }
  }

  async #mcp({ method, headers, body }: Seen, send: Send): Promise<void> {
    const token = headers.authorization?.replace(/^Bearer /, '')
    if (this.accepted && !this.accepted.has(token ?? '')) {
      const scope = this.scope === '' ? '' : `, scope="${this.scope}"`
      const metadata = `${this.url}/.well-known/oauth-protected-resource/mcp`
      return send(401, { error: 'unauthorized' }, { 'www-authenticate': `Bearer resource_metadata="${metadata}"${scope}` })
    }
    if (method !== 'POST') return send(405)
    const message = JSON.parse(body)
    if (message.id === undefined) return send(202)
    const answer = await this.mcp.answer(message, undefined as never).then(
      (result) => ({ result }),
      (error: Error) => ({ error: { code: -32601, message: error.message } }),
    )
    send(200, { jsonrpc: '2.0', id: message.id, ...answer })
  }

  #token(form: URLSearchParams, credentials: string | undefined, send: Send) {
    const isCode = form.get('grant_type') === 'authorization_code' && form.get('code') === 'the-code' && form.get('code_verifier') !== ''
    const isRenewal = form.get('grant_type') === 'refresh_token' && this.renewals.delete(form.get('refresh_token') ?? '')
    const isClient = form.get('grant_type') === 'client_credentials' && credentials === `Basic ${btoa('the-client:the-secret')}`
    if (!isCode && !isRenewal && !isClient) return send(400, { error: 'invalid_grant' })
    const [access_token, refresh_token] = [`token-${++this.#count}`, `renewal-${this.#count}`]
    this.accepted?.add(access_token)
    this.renewals.add(refresh_token)
    send(200, { access_token, refresh_token, token_type: 'Bearer', expires_in: 3600 })
  }
}

type Send = (status: number, value?: unknown, headers?: Record<string, string>) => void
