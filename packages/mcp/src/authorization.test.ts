import { createServer, type IncomingMessage } from 'node:http'
import { AppError, type PublicRequest } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { listenOnLoopback } from '@sluice/testkit/loopback-server'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import { Authorization } from './authorization.ts'
import { mcpSection } from './config.ts'

const SECRET = 'the-secret-of-the-client'
const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

interface Request {
  readonly method: string
  readonly path: string
  readonly hasSecret: boolean
}

type Answer = { readonly status?: number; readonly json?: object; readonly headers?: Record<string, string> } | undefined

/** A server that answers by path and notes each request. */
async function listen(answers: (path: string) => Answer) {
  const seen: Request[] = []
  const textOf = async (incoming: IncomingMessage): Promise<string> => {
    let text = ''
    for await (const chunk of incoming) text += chunk
    return text
  }
  const { url, close } = await listenOnLoopback(
    createServer((incoming, response) => {
      void textOf(incoming).then((body) => {
        const { method = '', url: path = '', headers } = incoming
        const credentials = atob((headers.authorization ?? '').replace(/^Basic /, ''))
        seen.push({ method, path, hasSecret: `${body}${credentials}`.includes(SECRET) })
        const { status, json, headers: own } = answers(path) ?? { status: 404 }
        response.writeHead(status ?? 200, { 'content-type': 'application/json', ...own }).end(JSON.stringify(json ?? {}))
      })
    }),
  )
  closing.push(close)
  return { url, seen }
}

/** The description of an authorization server, with changed endpoints. */
const described = (issuer: string, changes: object = {}): Answer => ({
  json: {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    registration_endpoint: `${issuer}/register`,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['client_secret_basic'],
    ...changes,
  },
})
const TOKEN: Answer = { json: { access_token: 'token', token_type: 'bearer' } }

/** An authorization server with a public name, and requests to it: all other names are private. */
async function publicServer(name: string, answers: (path: string, issuer: string) => Answer = (path, issuer) => usual(path, issuer)) {
  const issuer = `https://${name}`
  const server = await listen((path) => answers(path, issuer))
  return { issuer, ...server }
}
const usual = (path: string, issuer: string): Answer =>
  path.startsWith('/.well-known/oauth-authorization-server') ? described(issuer) : path === '/token' ? TOKEN : undefined

interface Given {
  /** The answers of the MCP server; `own` is its URL. */
  readonly answers: (path: string, own: string) => Answer
  readonly oauth?: object
  readonly public?: readonly { readonly issuer: string; readonly url: string }[]
}

async function arrange(given: Given) {
  const servers = [...(given.public ?? [])]
  const mcp = await listen((path) => given.answers(path, mcp.url))
  /** Reaches every address as the operator's network does, public names included. */
  const direct: typeof fetch = (input, init) => {
    const url = new URL(String(input))
    const server = servers.find(({ issuer }) => issuer === url.origin)
    return fetch(server ? server.url + url.pathname : url, init)
  }
  const publicFetch = async (text: string, { admit, signal, ...init }: PublicRequest): Promise<Response> => {
    const url = new URL(text)
    admit?.(url)
    const server = servers.find(({ issuer }) => issuer === url.origin)
    if (!server) throw new AppError('forbidden', `'${url.hostname}' is not a public address`)
    const response = await fetch(server.url + url.pathname, { ...init, signal, redirect: 'manual' } as RequestInit)
    const location = response.headers.get('location')
    return location === null ? response : publicFetch(new URL(location, text).href, { ...init, signal, ...(admit && { admit }) })
  }
  const host = testHost({ fetch: direct, publicFetch })
  const make = (oauth: object | undefined = given.oauth) => {
    const { servers: made } = v.parse(mcpSection.schema, { servers: { far: { url: `${mcp.url}/mcp`, ...(oauth && { oauth }) } } })
    return new Authorization({ server: 'far', url: `${mcp.url}/mcp`, oauth: made.far?.oauth, host })
  }
  const challenge = async () => ({ response: await fetch(`${mcp.url}/mcp`, { method: 'POST', redirect: 'manual' }) })
  return { mcp, host, servers, make, challenge }
}

const CLIENT = { grant: 'client_credentials', client_id: 'me', client_secret: SECRET }

/** An MCP server that names an authorization server, as RFC 9728 says. */
const naming =
  (issuer: () => string, metadata?: () => string) =>
  (path: string, own: string): Answer => {
    if (path.includes('oauth-protected-resource')) return { json: { resource: `${own}/mcp`, authorization_servers: [issuer()] } }
    const at = metadata?.() ?? `${own}/.well-known/oauth-protected-resource/mcp`
    return path === '/mcp' ? { status: 401, headers: { 'www-authenticate': `Bearer resource_metadata="${at}"` } } : undefined
  }

describe('an address that is not public', () => {
  const ways: readonly [string, (inside: string) => (path: string, own: string) => Answer][] = [
    [
      'as the description of the resource',
      (inside) =>
        naming(
          () => inside,
          () => `${inside}/metadata`,
        ),
    ],
    ['as the authorization server', (inside) => naming(() => inside)],
    [
      'as the endpoint for tokens and clients',
      (inside) => (path, own) =>
        path.includes('oauth-authorization-server')
          ? described(own, { token_endpoint: `${inside}/token`, registration_endpoint: `${inside}/register` })
          : naming(() => own)(path, own),
    ],
    [
      'by a redirect of the description',
      (inside) => (path, own) =>
        path.includes('well-known') ? { status: 302, headers: { location: `${inside}/metadata` } } : naming(() => own)(path, own),
    ],
    [
      'by a redirect of the endpoint for tokens',
      (inside) => (path, own) =>
        path.includes('oauth-authorization-server')
          ? described(own)
          : path === '/token' || path === '/register'
            ? { status: 307, headers: { location: `${inside}${path}` } }
            : naming(() => own)(path, own),
    ],
    [
      'by a redirect of a login',
      (inside) => (path, own) => (path === '/mcp' ? { status: 307, headers: { location: `${inside}/mcp` } } : naming(() => own)(path, own)),
    ],
  ]

  test.each(ways)('that the server names %s gets no request of a client', async (_, answers) => {
    const inside = await listen(() => TOKEN)
    const { make, challenge } = await arrange({ answers: answers(inside.url), oauth: CLIENT })
    await make()
      .onUnauthorized(await challenge())
      .catch(() => undefined)
    expect(inside.seen).toEqual([])
  })

  test.each(ways)('that the server names %s gets no request of a login', async (_, answers) => {
    const inside = await listen(() => TOKEN)
    const { make } = await arrange({ answers: answers(inside.url) })
    await make()
      .begin()
      .catch(() => undefined)
    expect(inside.seen).toEqual([])
  })

  test('of the configured issuer is asked for tokens', async () => {
    const inside = await listen((path) => usual(path, inside.url))
    const { make, challenge } = await arrange({ answers: naming(() => inside.url) })
    await expect(make(CLIENT).onUnauthorized(await challenge())).rejects.toThrow('set mcp.servers.far.oauth.issuer')
    const pinned = make({ ...CLIENT, issuer: inside.url })
    await pinned.onUnauthorized(await challenge())
    expect(await pinned.token()).toBe('token')
  })
})

describe('the secret of a client', () => {
  test('goes to the first authorization server and to no later one, even after the tokens have ended', async () => {
    const [first, second] = [await publicServer('first.example'), await publicServer('second.example')]
    let named = first.issuer
    const { make, challenge } = await arrange({ answers: naming(() => named), oauth: CLIENT, public: [first, second] })
    await make().onUnauthorized(await challenge())
    named = second.issuer
    await make().onUnauthorized(await challenge())
    expect(first.seen.filter(({ hasSecret }) => hasSecret)).toHaveLength(2)
    expect(second.seen).toEqual([])
  })

  test('stays with the first authorization server when that one no longer accepts it', async () => {
    let isAccepted = true
    const refusal: Answer = { status: 401, json: { error: 'invalid_client' } }
    const first = await publicServer('first.example', (path, issuer) => (path === '/token' && !isAccepted ? refusal : usual(path, issuer)))
    const second = await publicServer('second.example')
    let named = first.issuer
    const { make, challenge } = await arrange({ answers: naming(() => named), oauth: CLIENT, public: [first, second] })
    await make().onUnauthorized(await challenge())
    isAccepted = false
    named = second.issuer
    for (let count = 0; count < 2; count++) await expect(make().onUnauthorized(await challenge())).rejects.toThrow()
    expect(second.seen).toEqual([])
  })

  test('of a login goes to the first authorization server, also at a later login', async () => {
    const [first, second] = [await publicServer('first.example'), await publicServer('second.example')]
    let named = first.issuer
    const oauth = { client_id: 'me', client_secret: SECRET }
    const { make } = await arrange({ answers: naming(() => named), oauth, public: [first, second] })
    const login = async () => {
      const { url, finish } = await make().begin()
      await finish(`http://localhost/?code=c&state=${url.searchParams.get('state')}`)
      return url.origin
    }
    expect(await login()).toBe(first.issuer)
    named = second.issuer
    expect(await login()).toBe(first.issuer)
    expect(second.seen).toEqual([])
  })

  test('goes to the configured issuer, whatever the server names, and whatever was used before', async () => {
    const [first, second] = [await publicServer('first.example'), await publicServer('second.example')]
    const { make, challenge } = await arrange({ answers: naming(() => first.issuer), public: [first, second] })
    await make(CLIENT).onUnauthorized(await challenge())
    const before = first.seen.length
    await make({ ...CLIENT, issuer: second.issuer }).onUnauthorized(await challenge())
    expect([first.seen.length, second.seen.some(({ hasSecret }) => hasSecret)]).toEqual([before, true])
  })

  test('does not follow a redirect of a public authorization server to another one', async () => {
    const second = await publicServer('second.example')
    const first = await publicServer('first.example', (path, issuer) =>
      path === '/token' ? { status: 307, headers: { location: `${second.issuer}/token` } } : usual(path, issuer),
    )
    const { make, challenge } = await arrange({ answers: naming(() => first.issuer), oauth: CLIENT, public: [first, second] })
    await expect(make().onUnauthorized(await challenge())).rejects.toThrow('another origin')
    expect(second.seen).toEqual([])
  })
})

test('a description of more than a megabyte is not read', async () => {
  const { make, challenge } = await arrange({
    answers: (path, own) => (path.includes('well-known') ? { json: { text: 'x'.repeat(1 << 20) } } : naming(() => own)(path, own)),
    oauth: CLIENT,
  })
  await expect(make().onUnauthorized(await challenge())).rejects.toMatchObject({ code: 'too_large' })
})
