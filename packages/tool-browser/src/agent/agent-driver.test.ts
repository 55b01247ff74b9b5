import { mkdir, mkdtemp, readFile, rm, unlink, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { AppError, type Spawn, type SpawnRequest, type Workspace } from '@sluice/sdk'
import { type Listening, listenOnLoopback } from '@sluice/testkit/loopback-server'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { agentBrowser } from '../testing/agent-browser.ts'
import { createWorld, type World } from '../testing/world.ts'

let folder: string
let site: Listening
let world: World
const requests: SpawnRequest[] = []
const UNCONFINED = '[ran without a sandbox]'

/** Runs the fake of the command, without a sandbox. An aborted command ends by a signal, as the host's does. */
const spawn: Spawn = async (request) => {
  if (request.args[0] !== '--version') requests.push(request)
  const { stdout, stderr = '', exitCode = 0 } = await agentBrowser(request)
  const ended = request.signal?.aborted ? { exitCode: null, signal: 'SIGTERM' as const } : { exitCode, signal: null }
  return { ...ended, timedOut: false, stdout, stderr, truncated: false, sandbox: 'none' }
}

const workspace = (): Workspace => {
  const root = join(folder, 'workspace')
  return {
    root,
    read: (path) => readFile(join(root, path)),
    open: () => Promise.reject(new Error('this workspace opens no file')),
    write: async (path, bytes) => writeFile(join(root, path), bytes),
    remove: (path) => unlink(join(root, path)),
    list: async () => ({ entries: [], more: false }),
  }
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-agent-browser-'))
  for (const name of ['workspace', 'data']) await mkdir(join(folder, name))
  site = await listenOnLoopback(createServer((_request, response) => response.end('hello')))
})
afterAll(async () => {
  await site.close()
  await rm(folder, { recursive: true, force: true })
})
beforeEach(() => {
  requests.length = 0
  world = arrange()
})
afterEach(() => world.close())

const arrange = (config: object = {}) =>
  createWorld({
    config: { allowed_domains: ['site.test', 'inside.test'], session_name: 'me', ...config },
    names: { 'site.test': ['127.0.0.1'], 'inside.test': ['127.0.0.1'] },
    exempt: ['site.test'],
    host: { spawn, workspace: workspace(), dataDir: join(folder, 'data') },
  })
const home = () => `http://site.test:${new URL(site.url).port}/`
/** The arguments of all calls of the command, without the session and `--json`. */
const commandLines = () => requests.map(({ args }) => args.slice(2, -1).join(' '))

describe('AgentDriver', () => {
  test.each<[input: object, commandLine: string, answer: string]>([
    [{ action: 'snapshot' }, 'snapshot -i -c', '- button "Go" [ref=e1]'],
    [{ action: 'snapshot', interactive_only: false, compact: false, depth: 3 }, 'snapshot -d 3', '- button "Go" [ref=e1]'],
    [{ action: 'get_text', selector: '@e1' }, 'get text @e1', 'the text'],
    [{ action: 'get_title' }, 'get title', 'the title'],
    [{ action: 'get_url' }, 'get url', 'the url'],
    [{ action: 'is_visible', selector: '#a' }, 'is visible #a', 'true'],
    [{ action: 'fill', selector: '#a', value: 'x y' }, 'fill #a x y', 'Done.'],
    [{ action: 'fill', selector: '#a', value: '-5' }, 'fill #a -5', 'Done.'],
    [{ action: 'type', selector: '#a', text: 'x' }, 'type #a x', 'Done.'],
    [{ action: 'wait', ms: 5 }, 'wait 5', 'Done.'],
    [{ action: 'wait', selector: '#a' }, 'wait #a', 'Done.'],
    [{ action: 'wait', text: 'x' }, 'wait --text x', 'Done.'],
    [{ action: 'find', by: 'role', value: 'button', find_action: 'click' }, 'find role button click', 'Done.'],
    [{ action: 'find', by: 'label', value: 'Name', find_action: 'fill', fill_value: 'Ada' }, 'find label Name fill Ada', 'Done.'],
    [{ action: 'press', key: 'Enter' }, 'press Enter', 'pressed, without JSON'],
  ])('runs %j as %j', async (input, expected, answer) => {
    expect(await world.run(input)).toBe(`${answer}\n${UNCONFINED}`)
    // A session that an earlier daemon left is closed first, because its browser does not use this daemon's proxy.
    expect(commandLines()).toEqual(['close', expected])
  })

  test('runs each call in the sandbox, with a session per client and a clean environment', async () => {
    await world.run({ action: 'get_url' })
    await world.run({ action: 'get_url' }, { client: 'ben' })
    const [first, , other] = requests
    expect(first).toMatchObject({
      file: 'agent-browser',
      cwd: join(folder, 'workspace'),
      timeoutMs: expect.any(Number),
      policy: { network: true },
    })
    expect(first?.policy.writable).toEqual([join(folder, 'workspace'), join(folder, 'data/tool-browser')])
    expect(first?.args.slice(0, 2)).toEqual(['--session', expect.stringMatching(/^me-[0-9a-f]{16}$/)])
    expect(first?.args.at(-1)).toBe('--json')
    expect(other?.args[1]).not.toBe(first?.args[1])
    expect(other?.env.AGENT_BROWSER_PROXY_PASSWORD).not.toBe(first?.env.AGENT_BROWSER_PROXY_PASSWORD)
    expect(Object.keys(first?.env ?? {}).every((name) => /^(?:HOME|PATH|LANG|AGENT_BROWSER_)/.test(name))).toBe(true)
    // Without a first page, the start page of Debian's Chromium may replace the page that was opened.
    expect(first?.env.AGENT_BROWSER_ARGS).toBe('about:blank')
    expect(JSON.stringify(first?.args)).not.toContain(first?.env.AGENT_BROWSER_PROXY_PASSWORD)
  })

  test('opens a page through the egress proxy', async () => {
    expect(await world.run({ action: 'open', url: home() })).toBe(`Opened.\nPage: the page\nURL: ${home()}\n${UNCONFINED}`)
  })

  test('refuses hosts that are not allowed or not public before it runs the command', async () => {
    for (const url of ['http://other.test/', 'http://inside.test/', 'http://127.0.0.1/', 'file:///etc/passwd']) {
      await expect(world.run({ action: 'open', url })).rejects.toMatchObject({ code: 'forbidden' })
    }
    expect(requests).toEqual([])
  })

  test('closes the browser of a command that bypasses the proxy', async () => {
    await expect(world.run({ action: 'open', url: `${home()}around` })).rejects.toMatchObject({ code: 'unavailable' })
    expect(commandLines()).toEqual(['close', `open ${home()}around`, 'close'])
  })

  test('stores a screenshot through the workspace and removes the temporary file', async () => {
    expect(await world.run({ action: 'screenshot', path: 'a.png', full_page: true })).toBe(`The screenshot is in a.png.\n${UNCONFINED}`)
    const [, , , shot = '', full] = ['', ...(requests[1]?.args ?? [])]
    expect(shot).toBe('screenshot')
    expect(full).toMatch(/\/workspace\/\.[0-9a-f-]+\.png$/)
    expect(await readFile(join(folder, 'workspace/a.png'), 'utf8')).toBe('PNG')
    await expect(readFile(full ?? '')).rejects.toThrow()
    await expect(world.run({ action: 'screenshot', path: '.bashrc' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test("reports failures with the command's own message", async () => {
    await expect(world.run({ action: 'hover', selector: '#a' })).rejects.toMatchObject({
      code: 'upstream',
      message: 'agent-browser: no such element',
    })
    await expect(world.run({ action: 'click', selector: '#a' })).rejects.toMatchObject({ code: 'upstream' })
  })

  test.each([
    { action: 'click', selector: '--proxy' },
    { action: 'fill', selector: '#a', value: '--json' },
    { action: 'type', selector: '#a', text: '-p' },
    { action: 'press', key: '--session' },
    { action: 'find', by: 'text', value: '--cdp', find_action: 'click' },
  ])('refuses %j, which the command would parse as an option', async (input) => {
    await expect(world.run(input)).rejects.toMatchObject({ code: 'invalid_request' })
    expect(requests).toEqual([])
  })

  test('an abort ends the command', async () => {
    await expect(world.run({ action: 'scroll', direction: 'up' }, { signal: AbortSignal.timeout(800) })).rejects.toMatchObject({
      code: 'aborted',
    })
  })

  test('an aborted opening of a session causes no unhandled rejection, and the next action opens another session', async () => {
    const opening = new AbortController()
    const stdout = '{"success":true,"data":{"url":"the url"}}'
    const aborting: Spawn = async ({ args }) => {
      if (args.includes('close')) opening.abort()
      return { exitCode: 0, signal: null, timedOut: false, stdout, stderr: '', truncated: false, sandbox: 'none' }
    }
    const aborted = createWorld({ config: { allowed_domains: ['*'] }, host: { dataDir: join(folder, 'data'), spawn: aborting } })
    const unhandled: unknown[] = []
    const note = (error: unknown) => void unhandled.push(error)
    process.on('unhandledRejection', note)
    try {
      await expect(aborted.run({ action: 'get_url' }, { signal: opening.signal })).rejects.toMatchObject({ code: 'aborted' })
      await setImmediate()
    } finally {
      process.off('unhandledRejection', note)
    }
    expect(unhandled).toEqual([])
    expect(await aborted.run({ action: 'get_url' })).toContain('the url')
    await aborted.close()
  })

  test('an evicted client loses its access to the network', async () => {
    const passes: SpawnRequest['env'][] = []
    const quick: Spawn = async ({ env }) => {
      if (env.AGENT_BROWSER_PROXY) passes.push(env)
      return { exitCode: 0, signal: null, timedOut: false, stdout: '{"success":true}', stderr: '', truncated: false, sandbox: 'none' }
    }
    const crowded = createWorld({ config: { allowed_domains: ['*'] }, host: { dataDir: join(folder, 'data'), spawn: quick } })
    for (let at = 0; at < 17; at++) await crowded.run({ action: 'get_url' }, { client: `client-${at}` })
    const statusFor = async ({ AGENT_BROWSER_PROXY = '', ...pass }: SpawnRequest['env'] = {}) => {
      const { hostname, port } = new URL(AGENT_BROWSER_PROXY)
      const credentials = `${pass.AGENT_BROWSER_PROXY_USERNAME}:${pass.AGENT_BROWSER_PROXY_PASSWORD}`
      const headers = { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` }
      const { promise, resolve } = Promise.withResolvers<number | undefined>()
      request({ host: hostname, port, path: 'http://127.0.0.1/', headers, agent: false }, ({ statusCode }) => resolve(statusCode)).end()
      return promise
    }
    expect([await statusFor(passes[0]), await statusFor(passes.at(-1))]).toEqual([407, 403])
    await crowded.close()
  })

  test('close ends every session', async () => {
    await world.run({ action: 'get_url' })
    await world.close()
    expect(commandLines()).toEqual(['close', 'get url', 'close'])
  })

  test('the check reports the version', async () => {
    expect(await world.check()).toEqual([{ status: 'ok', detail: 'agent-browser 1.2.3' }])
  })

  const result = { exitCode: 0, signal: null, timedOut: false, stdout: 'agent-browser 1', stderr: '', truncated: false, sandbox: 'none' }

  test.each<[problem: string, spawn: Spawn, reason: string]>([
    [
      'is missing',
      () => Promise.reject(new AppError('not_found', 'not there')),
      'not installed, or not executable: npm install -g agent-browser',
    ],
    ['is not found by the sandbox', async () => ({ ...result, exitCode: 127, sandbox: 'jail' }), 'not installed'],
    ['is not executable', async () => ({ ...result, exitCode: 126 }), 'not executable'],
    ['does not start', async () => ({ ...result, exitCode: 1 }), '--version ended with exit code 1'],
    ['loses its browser after each command', async () => ({ ...result, sandbox: 'userns' }), "the sandbox 'userns' ends its browser"],
  ])('skips a command that %s, and tries native', async (_problem, spawning, reason) => {
    const config = { allowed_domains: ['*'], native_chrome_path: '/no/chromium' }
    const world = createWorld({ config, host: { dataDir: join(folder, 'data'), spawn: spawning } })
    const [found] = await world.check()
    expect(found).toMatchObject({ status: 'fail', detail: expect.stringContaining(reason) })
    expect(found?.detail).toContain('native cannot be used: Chromium is not installed')
    await expect(world.run({ action: 'get_url' })).rejects.toMatchObject({ code: 'unavailable', message: expect.stringContaining(reason) })
    await world.close()
  })
})
