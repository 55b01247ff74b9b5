/** `native`: an installed Chromium, one for all, started with the first page and ended with the last. */
import { join } from 'node:path'
import { PerClient, untilAborted } from '@sluice/kit'
import { AppError, type ClientId, errorText, type Finding, type Host, type ToolContext } from '@sluice/sdk'
import type { Browser } from 'playwright-core'
import type { Action, BrowserAction } from '../actions.ts'
import type { OptionalDriver } from '../backend.ts'
import type { BrowserConfig } from '../config.ts'
import { EgressProxy } from '../egress/egress-proxy.ts'
import { saveImage } from '../save-image.ts'
import type { UrlGuard } from '../url-guard.ts'
import { ClientContext } from './client-context.ts'
import { CHROMIUM_HINT, lacksNative } from './find-chromium.ts'
import { Lane } from './lane.ts'
import { isConfining, launchChromium } from './launch-chromium.ts'

const CLIENTS_MAX = 16
const IDLE_MS = 600_000

type NativeHost = Pick<Host, 'clock' | 'dataDir' | 'log' | 'workspace'>
type NativeConfig = Pick<BrowserConfig, 'native_headless' | 'native_chrome_path'>

interface Running {
  readonly browser: Browser
  readonly proxy: EgressProxy
}

/** Who has a place: its lane tells from the first moment on whether it is in use. */
interface Client {
  readonly lane: Lane
  readonly opening: Promise<ClientContext>
  /** On the clock's monotonic time. */
  usedAtMs: number
}

export class NativeDriver implements OptionalDriver {
  readonly #host: NativeHost
  readonly #config: NativeConfig
  readonly #guard: UrlGuard
  #running: Promise<Running> | undefined
  /** In the order of their last use. */
  readonly #clients = new PerClient<Client>('browser contexts', CLIENTS_MAX)
  /** Ends what waits for somebody to be idle. */
  #idle = new AbortController()

  constructor(host: NativeHost, config: NativeConfig, guard: UrlGuard) {
    this.#host = host
    this.#config = config
    this.#guard = guard
  }

  async run(action: Action, { client: id, signal }: ToolContext): Promise<string> {
    if (action.action === 'open') await this.#guard.addresses(this.#guard.page(action.url).hostname, signal)
    const client = this.#clients.find(id) ?? (action.action === 'open' ? this.#newClient(id) : undefined)
    if (!client) return action.action === 'close' ? 'Closed.' : noPage()
    this.#clients.keep(id, client)
    return client.lane.run(() => this.#act(id, client, action as BrowserAction, signal))
  }

  async unusable(): Promise<string | undefined> {
    return lacksNative(this.#config.native_chrome_path)
  }

  async check(): Promise<readonly Finding[]> {
    const startedMs = this.#host.clock.monotonicMs()
    try {
      const { browser, proxy } = await this.#launch()
      const version = browser.version()
      await Promise.all([browser.close(), proxy.close()])
      const detail = `Chromium ${version} started in ${Math.round(this.#host.clock.monotonicMs() - startedMs)} ms`
      if (isConfining()) return [{ status: 'ok', detail }]
      return [{ status: 'warn', detail: `${detail}; as root it cannot confine its pages`, fix: 'run Sluice as a user of its own' }]
    } catch (error) {
      return [{ status: 'fail', detail: errorText(error), fix: CHROMIUM_HINT }]
    }
  }

  async close(): Promise<void> {
    this.#idle.abort()
    this.#idle = new AbortController()
    await this.#stop()
  }

  async #act(id: ClientId, client: Client, action: BrowserAction, signal: AbortSignal): Promise<string> {
    const context = await untilAborted(client.opening, signal, 'the action was aborted')
    try {
      return await context.run(action, signal)
    } finally {
      client.usedAtMs = this.#host.clock.monotonicMs()
      if (context.isClosed) await this.#forget(id, client)
    }
  }

  /** Throws `unavailable` if everybody who has a place is busy. */
  #newClient(id: ClientId): Client {
    const client = { lane: new Lane(), opening: this.#openInPlaceOf(this.#makeRoom()), usedAtMs: this.#host.clock.monotonicMs() }
    void this.#closeWhenIdle(id, client).catch(() => this.#forget(id, client))
    return client
  }

  async #openInPlaceOf(left: Client | undefined): Promise<ClientContext> {
    const context = await left?.opening.catch(() => undefined)
    await context?.close()
    this.#running ??= this.#start()
    return ClientContext.open({ ...(await this.#running), guard: this.#guard, saveImage: saveImage(this.#host) })
  }

  /** Who has to go, if anybody has: the one that was idle for longest. */
  #makeRoom(): Client | undefined {
    if (this.#clients.size < CLIENTS_MAX) return undefined
    for (const [id, client] of this.#clients.entries()) {
      if (!client.lane.isIdle) continue
      this.#clients.forget(id)
      return client
    }
    throw new AppError('unavailable', 'all browsers are busy', { retryAfterSecs: 10 })
  }

  /** One for each client, as long as it has its place. */
  async #closeWhenIdle(id: ClientId, client: Client): Promise<void> {
    const { clock } = this.#host
    const { signal } = this.#idle
    const context = await client.opening
    for (let idleMs = 0; idleMs < IDLE_MS; idleMs = client.lane.isIdle ? clock.monotonicMs() - client.usedAtMs : 0) {
      await clock.sleep(IDLE_MS - idleMs, signal)
      if (signal.aborted || context.isClosed) return
    }
    // Whoever comes from here on gets a new one.
    this.#clients.forget(id)
    await context.close()
    await this.#stopIfUnused()
  }

  async #forget(id: ClientId, client: Client): Promise<void> {
    if (this.#clients.find(id) === client) this.#clients.forget(id)
    await this.#stopIfUnused()
  }

  async #stopIfUnused(): Promise<void> {
    if (this.#clients.size === 0) await this.#stop()
  }

  #start(): Promise<Running> {
    const starting = this.#launch()
    const forget = () => {
      if (this.#running !== starting) return
      this.#running = undefined
      this.#clients.clear()
    }
    void starting.then(
      ({ browser, proxy }) =>
        browser.on('disconnected', () => {
          forget()
          void proxy.close()
        }),
      forget,
    )
    return starting
  }

  async #launch(): Promise<Running> {
    const proxy = await EgressProxy.start(this.#guard)
    try {
      const browser = await launchChromium({
        headless: this.#config.native_headless,
        chromePath: this.#config.native_chrome_path,
        proxyUrl: proxy.url,
        home: join(this.#host.dataDir, 'tool-browser'),
      })
      return { browser, proxy }
    } catch (error) {
      await proxy.close()
      throw error
    }
  }

  async #stop(): Promise<void> {
    const running = this.#running
    this.#running = undefined
    this.#clients.clear()
    const { browser, proxy } = (await running?.catch(() => undefined)) ?? {}
    await browser?.close().catch((error: unknown) => this.#host.log.warn('the browser did not close', { error }))
    await proxy?.close()
  }
}

const noPage = (): never => {
  throw new AppError('conflict', "no page is open; begin with action 'open'")
}
