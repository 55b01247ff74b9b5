/** Sluice inside another program: what `createSluice` promises to its caller. */
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import { gatewaySection } from '@sluice/config'
import offline from '@sluice/provider-offline'
import { AppError, defineFeature, type Feature, type LogFields, type Logger, secretText } from '@sluice/sdk'
import { Hono } from 'hono'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createSluice, type Sluice, type SluiceOptions } from './create-sluice.ts'
import type { EventOf } from './embedded-turns.ts'

let folder: string
const closers: (() => Promise<unknown>)[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-embedded-'))
})
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close()
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

async function create(name: string, options: Partial<SluiceOptions> = {}): Promise<Sluice> {
  const sluice = await createSluice({ features: [offline], dataDir: join(folder, name), logger: false, ...options })
  closers.push(sluice.close)
  return sluice
}

async function serve(listener: Parameters<typeof createServer>[1]): Promise<{ server: Server; url: string }> {
  const server = createServer(listener)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const newToken = async ({ call }: Sluice): Promise<string> =>
  ((await call({ method: 'POST', path: '/api/devices', body: { name: 'test' } })) as { token: string }).token

const ask = (url: string, token: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/webhook`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ message: 'hello' }),
  })

const feature = (build: Feature['build'], section?: Feature['section']): Feature =>
  defineFeature({ id: 'x-test', ...(section && { section }), build }) as Feature

const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

describe('two instances in one process', () => {
  test('serve below their own paths of one server; one keeps serving while the other closes', { timeout: 60_000 }, async () => {
    const [one, two] = await Promise.all([create('one'), create('two')])
    const host = new Hono().route('/one', one.app).route('/tenants/:name/two', two.app)
    const { url } = await serve(getRequestListener(host.fetch, { overrideGlobalObjects: false }))
    const [first, second] = [`${url}/one`, `${url}/tenants/a%20b/two`]
    const [t1, t2] = [await newToken(one), await newToken(two)]
    expect((await ask(first, t1)).status).toBe(200)
    expect((await ask(second, t2)).status).toBe(200)
    expect((await ask(first, t2)).status).toBe(401)
    const accepted = (await (await ask(second, t2, { prefer: 'respond-async' })).json()) as { status_url: string }
    expect(accepted.status_url).toMatch(/^\/tenants\/a%20b\/two\/api\/turns\//)
    expect((await fetch(url + accepted.status_url, { headers: { authorization: `Bearer ${t2}` } })).status).toBe(200)

    await Promise.all([one.close(), one.close()])
    const refused = await ask(first, t1)
    expect([refused.status, await refused.json()]).toEqual([503, { error: 'The daemon has stopped', code: 'unavailable' }])
    expect((await ask(second, t2)).status).toBe(200)
    await expect(one.listen({ port: 0 })).rejects.toMatchObject({ code: 'unavailable' })
  })

  test('serve WebSockets of one server, and Node requests without Hono', { timeout: 60_000 }, async () => {
    const [one, two] = await Promise.all([create('one'), create('two')])
    const { server, url } = await serve((request, response) => two.handleRequest(request, response))
    server.on('upgrade', (request, socket, head) =>
      (request.url?.startsWith('/one/') ? one : two).handleUpgrade(request, socket, head as Buffer),
    )
    const chatWith = async (path: string, token: string): Promise<string> => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}${path}/ws/chat`, ['sluice.v1', `bearer.${token}`])
      const [event] = (await once(socket, 'message')) as [{ readonly data: string }]
      socket.close()
      return event.data
    }
    const [t1, t2] = [await newToken(one), await newToken(two)]
    expect(JSON.parse(await chatWith('/one', t1))).toMatchObject({ type: 'session_start' })
    expect(JSON.parse(await chatWith('', t2))).toMatchObject({ type: 'session_start' })
    expect((await ask(url, t2)).status).toBe(200)
    await two.close()
    const refused = await ask(url, t2)
    expect([refused.status, await refused.json()]).toMatchObject([503, { code: 'unavailable' }])
  })

  test('name paths below the path that Express mounted them under', { timeout: 60_000 }, async () => {
    const sluice = await create('one')
    const { url } = await serve((request, response) => {
      // As Express does for `app.use('/assistant', …)`.
      Object.assign(request, { baseUrl: '/assistant', url: request.url?.slice('/assistant'.length) })
      sluice.handleRequest(request, response)
    })
    const answer = await ask(`${url}/assistant`, await newToken(sluice), { prefer: 'respond-async' })
    expect(await answer.json()).toMatchObject({ status_url: expect.stringMatching(/^\/assistant\/api\/turns\//) })
  })

  test('a second one on the same data directory is refused, and the first one goes on', async () => {
    const one = await create('one')
    await expect(create('one')).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining(join(folder, 'one')) })
    expect(await one.run('still here?')).toMatchObject({ model: expect.any(String) })
    await one.close()
    await expect(create('one')).resolves.toBeDefined()
  })
})

test('nothing global changes, and standard output stays empty', async () => {
  const globals = () => ({
    events: process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
    classes: [Request, Response, fetch, WebSocket],
    umask: process.umask(),
    cwd: process.cwd(),
    env: JSON.stringify(process.env),
  })
  const before = globals()
  const written = vi.spyOn(process.stdout, 'write')
  const sluice = await create('one', { logger: silent })
  const url = await sluice.listen({ port: 0 })
  expect((await ask(url, await newToken(sluice))).status).toBe(200)
  expect(globals()).toEqual(before)
  expect(statSync(join(folder, 'one', 'control.sock')).mode & 0o777).toBe(0o600)
  await sluice.close()
  expect(globals()).toEqual(before)
  expect(written).not.toHaveBeenCalled()
  expect(existsSync(join(folder, 'one', 'control.sock'))).toBe(false)
})

describe('the configuration', () => {
  test('can be an object; the environment counts only if it is given', async () => {
    vi.stubEnv('SVC_GATEWAY_HOST', 'nowhere.invalid')
    const config = { gateway: { host: 'localhost', port: undefined }, agents: { critic: { system_prompt: 'Be strict.' } } }
    const sluice = await create('one', { config })
    vi.unstubAllEnvs()
    expect(await sluice.listen({ port: 0 })).toMatch(/^http:\/\/localhost:\d+$/)
    expect(sluice.url).toMatch(/^http:\/\/localhost:/)
    expect(await sluice.run('hello', { agent: 'critic' })).toMatchObject({ finishReason: 'stop' })
    const other = await create('two', { env: { SVC_GATEWAY_HOST: 'localhost' }, listen: { port: 0 } })
    expect(other.url).toMatch(/^http:\/\/localhost:/)
  })

  test('names every mistake of an object by its key, and leaves the data directory free', async () => {
    const config = { gateway: { prot: 1 }, agent: { max_iterations: 'many' } }
    await expect(create('one', { config })).rejects.toMatchObject({
      code: 'config_invalid',
      message: expect.stringMatching(/^config: .*`gateway\.prot`/),
      fields: { problems: [{ key: 'gateway.prot' }, { key: 'agent.max_iterations' }] },
    })
    await create('one')
  })

  test('can be a file, whose changes come into force', { timeout: 60_000 }, async () => {
    const file = join(folder, 'app.toml')
    writeFileSync(file, '[gateway]\nrequire_pairing = true\n')
    const sluice = await create('one', { config: file })
    const seen: EventOf<'config_reloaded'>[] = []
    sluice.on('config_reloaded', (event) => seen.push(event))
    writeFileSync(file, '[gateway]\nrequire_pairing = false\n')
    await sluice.reload()
    expect(seen).toMatchObject([{ type: 'config_reloaded', sections: [gatewaySection.path] }])
    expect(await sluice.call({ method: 'GET', path: '/api/status' })).toMatchObject({ require_pairing: false })
  })
})

describe('the signal', () => {
  test('closes the instance when it aborts', async () => {
    const stop = new AbortController()
    const sluice = await create('one', { signal: stop.signal })
    const url = await sluice.listen({ port: 0 })
    stop.abort()
    await sluice.closed
    await expect(fetch(url)).rejects.toThrow()
    await create('one')
  })

  test('that aborts before or during the start leaves nothing open', async () => {
    await expect(create('one', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
    expect(existsSync(join(folder, 'one'))).toBe(false)
    const stop = new AbortController()
    const starting = create('one', { signal: stop.signal })
    stop.abort()
    await expect(starting).rejects.toMatchObject({ code: 'aborted' })
    await create('one')
  })
})

test('the log goes to the given logger, with secrets masked', async () => {
  const lines: [string, LogFields | undefined][] = []
  const record = (message: string, fields?: LogFields) => void lines.push([message, fields])
  const section = { path: 'x.test', schema: v.object({ token: secretText() }) }
  const build: Feature['build'] = ({ log }, config) => {
    const { token } = config as { token: { reveal(): string } }
    log.warn(`asked with ${token.reveal()}`, { url: `https://chat.example/${token.reveal()}` })
    return {}
  }
  const logger = { ...silent, warn: record, info: record }
  const config = { x: { test: { token: 'a-long-secret' } } }
  const sluice = await create('one', { features: [offline, feature(build, section as never)], logger, config })
  expect(lines).toContainEqual([
    'asked with [secret]',
    expect.objectContaining({ component: 'x-test', url: 'https://chat.example/[secret]' }),
  ])
  expect(JSON.stringify(lines)).not.toContain('a-long-secret')
  sluice.log.info('from the host')
  expect(lines).toContainEqual(['from the host', {}])
})

test('requests of features go through the given fetch', async () => {
  const asked: string[] = []
  const respond: typeof fetch = async (input, init) => {
    asked.push(`${String(input)} ${new Headers(init?.headers).get('user-agent')}`)
    return new Response('ok')
  }
  const build: Feature['build'] = (host) => ({ register: async () => void (await host.fetch('https://chat.example/me')) })
  await create('one', { features: [offline, feature(build)], fetch: respond })
  expect(asked).toEqual(['https://chat.example/me Sluice'])
})

describe('a turn', () => {
  test('runs without HTTP, remembers its session, and emits events', async () => {
    const sluice = await create('one', { logger: silent })
    const errors = vi.spyOn(silent, 'error')
    const completed: EventOf<'turn_completed'>[] = []
    const all: string[] = []
    sluice.on('turn_completed', () => {
      throw new Error('a bug of the host')
    })
    sluice.on('turn_completed', (event) => completed.push(event))
    const unsubscribe = sluice.on('*', ({ type }) => all.push(type))
    const parts: string[] = []
    const { id, text } = await sluice.run('remember 42', { session: 'notes', onPart: ({ type }) => parts.push(type) })
    unsubscribe()
    expect(text).not.toBe('')
    expect(parts).toContain('text')
    expect(completed).toMatchObject([{ turn_id: id, source: 'embedded' }])
    expect(all).toContain('turn_completed')
    expect(errors).toHaveBeenCalledWith('a listener of events failed', expect.objectContaining({ type: 'turn_completed' }))
    await sluice.run('and?', { session: 'notes' })
    const { sessions } = (await sluice.call({ method: 'GET', path: '/api/sessions' })) as { sessions: unknown[] }
    expect(sessions).toMatchObject([{ message_count: 4 }])
  })

  test('is refused for an agent or a session name that is not valid', async () => {
    const sluice = await create('one')
    await expect(sluice.run('hello', { agent: 'nobody' })).rejects.toMatchObject({ code: 'invalid_request' })
    await expect(sluice.run('hello', { session: 'no spaces' })).rejects.toThrow(AppError)
    await expect(sluice.run('hello', { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
  })
})
