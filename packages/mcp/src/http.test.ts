import { AppError, type ClientId, type CommandContext } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { toolContext } from '@sluice/testkit/tool'
import * as v from 'valibot'
import { afterEach, describe, expect, test } from 'vitest'
import feature from './index.ts'
import { HttpServer } from './testing/http-server.ts'
import { waitFor } from './testing/wait-for.ts'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function arrange(given: object = {}, accepted?: Set<string>) {
  const server = await new HttpServer().listen()
  server.accepted = accepted
  server.mcp.tools = [{ name: 'echo', run: (input) => ({ content: [{ type: 'text', text: JSON.stringify(input) }] }) }]
  const host = testHost({ fetch })
  const schema = feature.section?.schema
  if (!schema) throw new Error('The feature has no section')
  const parts = feature.build(host, v.parse(schema, { servers: { far: { url: `${server.url}/mcp`, ...given } } }))
  await parts.register?.(new AbortController().signal)
  closing.push(
    async () => parts.close?.(),
    () => server.close(),
  )
  const call = (input: object = {}, client = 'ann', signal?: AbortSignal) => {
    const tool = parts.tools?.find(({ name }) => name === 'mcp__far__echo')
    if (!tool) throw new Error('no tool')
    return tool.run(input, { ...toolContext(signal, host.by), client: client as ClientId })
  }
  /** Logs in as a person would; `answer` makes the address at which the browser ended from the one that was opened. */
  const login = async (answer: (opened: URL) => string) => {
    const printed: string[] = []
    const context: CommandContext = {
      args: ['far'],
      cwd: '/',
      json: false,
      print: (text) => void printed.push(text),
      warn: () => {},
      signal: new AbortController().signal,
      addToConfig: async () => {},
      by: 'cli:ada',
      setInConfig: async () => {},
      ask: async () => answer(new URL(/http:\S+/.exec(printed[0] ?? '')?.[0] ?? '')),
    }
    await parts.commands?.find(({ name }) => name === 'mcp login')?.run(context)
    return printed
  }
  return { server, host, parts, call, login, listed: () => waitFor(() => expect(host.refreshes).not.toEqual([])) }
}

const ended = (opened: URL, changes: Record<string, string> = {}) => {
  const query = new URLSearchParams({ code: 'the-code', state: opened.searchParams.get('state') ?? '', ...changes })
  return `${opened.searchParams.get('redirect_uri')}?${query}`
}

describe('a server that is reached over HTTP', () => {
  test('gets the configured headers and nothing else that identifies anyone', async () => {
    const { server, call, listed } = await arrange({ headers: { 'X-Api-Key': ' secret-key ' } })
    await listed()
    expect(await call({ a: 1 })).toBe('{"a":1}')
    for (const { headers } of server.seen) {
      expect(headers).toMatchObject({ 'x-api-key': 'secret-key' })
      expect([headers.authorization, headers.cookie]).toEqual([undefined, undefined])
    }
  })

  test('may not redirect to another origin', async () => {
    const other = await new HttpServer().listen()
    closing.push(() => other.close())
    const { server, call, listed } = await arrange({ headers: { 'X-Api-Key': 'secret-key' } })
    await listed()
    server.instead = (_, response) => {
      response.writeHead(307, { location: `${other.url}/mcp` }).end()
      return true
    }
    await expect(call()).rejects.toMatchObject({ code: 'upstream' })
    expect(other.seen).toEqual([])
  })

  test('cannot send an endless answer', async () => {
    const { server, call, listed } = await arrange()
    await listed()
    await call()
    server.instead = ({ body }, response) => {
      if (!body.includes('tools/call')) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let count = 0; count < 9; count++) response.write(`data: ${'x'.repeat(1024 * 1024)}\n`)
      return true
    }
    await expect(call()).rejects.toMatchObject({ message: expect.stringContaining('a message has more than 8388608 bytes') })
  })

  test('that ends its stream at once is asked again at most twenty times in a minute', async () => {
    const server = await new HttpServer().listen()
    closing.push(() => server.close())
    server.mcp.tools = [{ name: 'echo' }]
    server.instead = ({ method }, response) => {
      if (method !== 'GET') return false
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 0\nid: 1\ndata: \n\n')
      return true
    }
    const { host, call, parts } = await arrange({ url: `${server.url}/mcp` })
    await waitFor(() => expect(parts.tools).toHaveLength(1))
    await call()
    const streams = () => server.seen.filter(({ method }) => method === 'GET').length
    const before = streams()
    await waitFor(async () => {
      await host.advance(1)
      expect(streams() - before).toBeGreaterThan(15)
    })
    for (let count = 0; count < 200; count++) await host.advance(1)
    expect(streams() - before).toBeLessThan(2 * 22)
  })

  test('that floods a stream is read at a bounded pace', async () => {
    const { server, call, listed, host } = await arrange()
    await listed()
    await call()
    await waitFor(() => expect(host.clock.sleeping).toBe(1))
    let sent = 0
    server.instead = ({ body }, response) => {
      if (!body.includes('tools/call')) return false
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const flood = 'data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n\n'.repeat(1000)
      const more = () => {
        while (!response.destroyed && sent < 400 && response.write(flood)) sent += 1
        if (sent >= 400) response.end('data: {"jsonrpc":"2.0","id":99,"result":{}}\n\n')
      }
      response.on('drain', more)
      more()
      return true
    }
    const abort = new AbortController()
    const flooded = call({}, 'ann', abort.signal)
    await waitFor(() => expect(host.clock.sleeping).toBe(2))
    expect(sent).toBeLessThan(400)
    abort.abort(new AppError('aborted', 'enough'))
    await expect(flooded).rejects.toMatchObject({ message: 'enough' })
  })

  test.each([
    [404, 'Session not found'],
    [400, 'Bad Request: No valid session ID provided'],
    // A server of the SDK with one transport, after its restart.
    [400, 'Bad Request: Server not initialized'],
    [410, 'Gone'],
    [422, 'Session ID is unknown'],
    [403, 'Session terminated'],
    // An error of the protocol under HTTP status 200
    [200, 'Session not found'],
  ])('that has forgotten a session and answers %i runs the call once in a new one', async (status, message) => {
    const { server, call, listed } = await arrange()
    await listed()
    await call()
    let isForgotten = true
    let refused = 0
    server.instead = ({ body }, response) => {
      if (/"(?:initialize|server\/discover)"/.test(body)) isForgotten = false
      if (!isForgotten) return false
      refused++
      const id = status === 200 ? JSON.parse(body).id : null
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32000, message } }))
      return true
    }
    expect(await call({ b: 2 })).toBe('{"b":2}')
    expect(refused).toBeGreaterThan(0)
  })

  test('that forgets the session during a call of the same client runs that call once, and its result arrives', async () => {
    const { server, call, listed } = await arrange()
    await listed()
    await call()
    let runs = 0
    let answerSlow = () => {}
    let isForgotten = false
    server.instead = ({ body }, response) => {
      if (body.includes('"slow"')) {
        runs++
        answerSlow = () => {
          const { id } = JSON.parse(body)
          response.writeHead(200, { 'content-type': 'application/json' })
          response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } }))
        }
        return true
      }
      if (/"(?:initialize|server\/discover)"/.test(body)) isForgotten = false
      if (!isForgotten) return false
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Session not found' } }))
      return true
    }
    const slow = call({ how: 'slow' })
    await waitFor(() => expect(runs).toBe(1))
    isForgotten = true
    expect(await call({ b: 2 })).toBe('{"b":2}')
    answerSlow()
    expect(await slow).toBe('done')
    expect(runs).toBe(1)
  })

  test.each([
    [-32_603, 'Session not found'],
    [-32_602, 'Session is expired'],
    [-32_000, 'The browser session is expired'],
    [-32_000, 'Session not found: log in at the shop first'],
  ])('whose tool ends with the error %i "%s" runs the call once, since the tool may have done its work', async (code, message) => {
    const { server, call, listed } = await arrange()
    await listed()
    let runs = 0
    server.instead = ({ body }, response) => {
      if (!body.includes('tools/call')) return false
      runs++
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, error: { code, message } }))
      return true
    }
    await expect(call()).rejects.toThrow(message)
    expect(runs).toBe(1)
  })

  test.each([
    [404, 'No such page'],
    [400, 'Bad Request: Unsupported protocol version'],
    // The call may have run.
    [500, 'Session not found'],
  ])('that answers %i to each call gets it at most twice', async (status, message) => {
    const { server, call, listed } = await arrange()
    await listed()
    let calls = 0
    server.instead = ({ body }, response) => {
      if (!body.includes('tools/call')) return false
      calls++
      response.writeHead(status).end(message)
      return true
    }
    await expect(call()).rejects.toMatchObject({ code: 'upstream' })
    expect(calls).toBe(status === 404 ? 2 : 1)
    server.instead = undefined
    expect(await call()).toBe('{}')
  })
})

describe('a server that asks for a login', () => {
  test('works after a login, and keeps the tokens encrypted', async () => {
    const { server, call, login, host } = await arrange({}, new Set())
    const printed = await login((opened) => {
      expect(Object.fromEntries(opened.searchParams)).toMatchObject({
        response_type: 'code',
        client_id: 'registered',
        code_challenge_method: 'S256',
        resource: `${server.url}/mcp`,
      })
      return ended(opened)
    })
    expect(printed.at(-2)).toBe('far answers. It has 1 tool.')
    expect(await call({ b: 2 })).toBe('{"b":2}')
    expect(server.seen.at(-1)?.headers.authorization).toBe('Bearer token-1')
    expect(await host.secrets.get('oauth.far')).toContain('token-1')
    expect(JSON.stringify(await host.keyValue.list('', 10))).not.toContain('token-1')
  })

  test('refuses the address of another login', async () => {
    const { login } = await arrange({}, new Set())
    await expect(login((opened) => ended(opened, { state: 'other' }))).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(login(() => 'nonsense')).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(login((opened) => ended(opened, { error: 'access_denied' }))).rejects.toMatchObject({
      message: 'The login was refused: access_denied',
    })
  })

  test('is asked for the permissions that it wants, and for more when a call needs more', async () => {
    const { server, call, login } = await arrange({}, new Set())
    const scopes: (string | null)[] = []
    const remember = (opened: URL) => {
      scopes.push(opened.searchParams.get('scope'))
      return ended(opened)
    }
    server.scope = 'read'
    await login(remember)
    server.instead = ({ body }, response) => {
      if (!body.includes('tools/call')) return false
      response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="read write"' }).end()
      return true
    }
    await expect(call()).rejects.toMatchObject({ code: 'unauthorized', message: expect.stringContaining("run 'sluice mcp login far'") })
    server.instead = undefined
    await login(remember)
    expect(scopes).toEqual(['read', 'read write'])
    expect(await call()).toBe('{}')
  })

  test('renews tokens once for all requests that need it', async () => {
    const { server, call, login } = await arrange({}, new Set())
    await login(ended)
    await Promise.all([call({}, 'ann'), call({}, 'bob')])
    server.accepted?.clear()
    expect(await Promise.all([call({ a: 1 }, 'ann'), call({ b: 2 }, 'bob')])).toEqual(['{"a":1}', '{"b":2}'])
    expect(server.seen.filter(({ body }) => body.includes('grant_type=refresh_token'))).toHaveLength(1)
  })

  test('says how to log in when the login is missing or has ended', async () => {
    const { server, call, login, parts } = await arrange({}, new Set())
    const advice = "asks for a login: run 'sluice mcp login far'"
    await waitFor(async () => expect(JSON.stringify(await parts.check?.(new AbortController().signal))).toContain(advice))
    await login(ended)
    server.accepted?.clear()
    server.renewals.clear()
    await expect(call()).rejects.toMatchObject({ message: expect.stringContaining(advice) })
  })
})

describe('a server that lets clients in without a login', () => {
  const oauth = { grant: 'client_credentials', client_id: 'the-client', client_secret: 'the-secret' }

  test('gives the client a token, again when it has expired, and with more permissions when a call needs them', async () => {
    const { server, call, listed, login } = await arrange({ oauth }, new Set())
    await listed()
    expect(await call({ a: 1 })).toBe('{"a":1}')
    server.accepted?.clear()
    expect(await call({ a: 2 })).toBe('{"a":2}')
    server.instead = ({ body }, response) => {
      if (!body.includes('tools/call')) return false
      server.accepted?.clear()
      response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="write"' }).end()
      return true
    }
    await expect(call()).rejects.toMatchObject({ code: 'unauthorized' })
    server.instead = undefined
    expect(await call({ a: 3 })).toBe('{"a":3}')
    const asked = server.seen.filter(({ path }) => path === '/token').map(({ body }) => new URLSearchParams(body))
    expect(asked.map((form) => form.get('grant_type'))).toEqual(asked.map(() => 'client_credentials'))
    expect(asked.at(-1)?.get('scope')).toBe('write')
    await expect(login(ended)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('needs no login') })
  })

  test('refuses a wrong secret with the reason', async () => {
    const { parts } = await arrange({ oauth: { ...oauth, client_secret: 'wrong' } }, new Set())
    const findings = await parts.check?.(new AbortController().signal)
    expect(JSON.stringify(findings)).toContain('invalid_grant')
  })

  test('needs the id and the secret of the client', () => {
    const schema = feature.section?.schema
    if (!schema) throw new Error('The feature has no section')
    const accepts = (given: object) => v.safeParse(schema, { servers: { far: { url: 'https://far.example/mcp', oauth: given } } }).success
    expect([accepts(oauth), accepts({ ...oauth, client_secret: undefined }), accepts({ grant: 'client_credentials' })]).toEqual([
      true,
      false,
      false,
    ])
  })
})
