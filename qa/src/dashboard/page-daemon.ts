/** A daemon of a built bundle with its dashboard, and browsers that are signed in to it, for the tests of the page. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { testChromium } from '../chromium.ts'
import { ROOT, type RunningDaemon, run, scratch, startDaemon, token } from '../daemons/bundle.ts'

/** Times depend on what else the machine does: `pnpm test:browser` prints them, and `pnpm test:figures` fails when one is too long. */
export const ARE_FIGURES_CHECKED = process.env.SLUICE_FIGURES === '1'

/** The browser on this machine, or a clause with the reason why it is missing. */
export const foundChromium = await testChromium()
export const whySkipped = 'missing' in foundChromium ? ` (skipped: ${foundChromium.missing})` : ''

export async function launchChromium(args: readonly string[] = []): Promise<Browser> {
  if ('missing' in foundChromium) throw new Error(foundChromium.missing)
  const { path, env } = foundChromium
  return chromium.launch({
    executablePath: path,
    env: { ...(process.env as Record<string, string>), ...env },
    args: ['--no-sandbox', '--enable-precise-memory-info', '--js-flags=--expose-gc', ...args],
  })
}

export const PROFILE = 'standard'

/**
 * Builds `standard` with more features into a folder of `dist/` for one test. It takes some seconds, and is done each time, because
 * no other command replaces such a build after a change of the sources.
 */
export function buildWith(features: string, name: string): void {
  const args = [join(ROOT, 'scripts/build.mjs'), PROFILE, '--features', features, '--name', name, '--summary']
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`The build ${name} failed: ${stderr}`)
}

export interface PageDaemon {
  readonly daemon: RunningDaemon
  /** The address that people open: passkeys and the cookie of the session need a name. */
  readonly address: string
  readonly dataDir: string
  /** The token of a paired operator. */
  readonly bearer: string
  /** Returns a link that signs a browser in once. */
  link(role?: 'operator' | 'client'): Promise<string>
  /** Calls the API with a bearer token. */
  call(method: string, path: string, body?: unknown): Promise<unknown>
  /** Ends the daemon with this signal, and starts it again at the same port. */
  restart(signal: NodeJS.Signals): Promise<void>
  kill(signal: NodeJS.Signals): Promise<void>
  /** Starts the daemon again at the same port. */
  start(): Promise<void>
  stop(): Promise<void>
}

interface PageDaemonOptions {
  /** The folder of the bundle. */
  readonly profile?: string
  readonly port?: number
}

export async function startPageDaemon(config = '', { profile = PROFILE, port: wanted = 0 }: PageDaemonOptions = {}): Promise<PageDaemon> {
  const { dir, dispose } = scratch(config)
  let daemon = await startDaemon(profile, dir, { args: ['--port', String(wanted)] })
  const { port } = new URL(daemon.url)
  const bearer = await token(profile, dir, 'test')
  const kill = async (signal: NodeJS.Signals) => {
    daemon.kill(signal)
    await daemon.exited
  }
  const start = async () => {
    daemon = await startDaemon(profile, dir, { args: ['--port', port] })
  }
  return {
    get daemon() {
      return daemon
    },
    address: `http://localhost:${port}`,
    dataDir: dir,
    bearer,
    async link(role = 'operator') {
      const { stdout, stderr } = await run(profile, ['dashboard', '--json', '--role', role, '--data-dir', dir])
      if (!stdout.includes('url')) throw new Error(`No link: ${stderr}`)
      return (JSON.parse(stdout) as { url: string }).url
    },
    async call(method, path, body) {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
      return text === '' ? undefined : JSON.parse(text)
    },
    kill,
    start,
    async restart(signal) {
      await kill(signal)
      await start()
    },
    async stop() {
      await kill('SIGTERM')
      dispose()
    },
  }
}

/** The acts of a page that are forbidden. */
export interface Watched {
  readonly page: Page
  /** Errors of its scripts, breaches of its policy, and requests to other hosts. */
  readonly faults: readonly string[]
  readonly requests: readonly string[]
}

/** Opens a page in a context, and watches it. */
export async function watchedPage(context: BrowserContext, address: string): Promise<Watched> {
  const page = await context.newPage()
  const faults: string[] = []
  const requests: string[] = []
  page.on('pageerror', ({ message }) => faults.push(message))
  page.on('console', (message) => {
    const text = message.text()
    // The browser itself reports refused and failed requests, which the page handles.
    if (message.type() === 'error' && !/Failed to load resource|WebSocket connection|net::ERR/.test(text)) faults.push(text)
  })
  page.on('dialog', (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    requests.push(request.url())
    const { protocol, host } = new URL(request.url())
    if (/^(?:https?|wss?):$/.test(protocol) && host !== new URL(address).host) faults.push(`a request to another host: ${request.url()}`)
  })
  page.on('websocket', (socket) => requests.push(socket.url()))
  return { page, faults, requests }
}

/** Opens the page of a daemon in a browser of its own, signed in. */
export async function signedIn(
  browser: Browser,
  gateway: PageDaemon,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<Watched> {
  const context = await browser.newContext(options)
  const watched = await watchedPage(context, gateway.address)
  await watched.page.goto(await gateway.link())
  await watched.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  return watched
}
