/** `native`: an installed Chromium, one for all, started with the first page and ended with the last. */
import { join } from 'node:path'
import { AppError, type ClientId, errorText, type Finding, type Host, type ToolContext, untilAborted } from '@sluice/sdk'
import type { Browser } from 'playwright-core'
import type { Action, BrowserAction } from '../actions.ts'
import type { Driver } from '../backend.ts'
import type { BrowserConfig } from '../config.ts'
import { EgressProxy } from '../egress/egress-proxy.ts'
import { saveImage } from '../save-image.ts'
import type { UrlGuard } from '../url-guard.ts'
import { ClientContext } from './client-context.ts'
import { CHROMIUM_HINT } from './find-chromium.ts'
import { isConfining, launchChromium } from './launch-chromium.ts'

const CLIENTS_MAX = 16
const IDLE_MS = 600_000

type NativeHost = Pick<Host, 'clock' | 'dataDir' | 'log' | 'workspace'>
type NativeConfig = Pick<BrowserConfig, 'native_headless' | 'native_chrome_path'>

interface Running {
  readonly browser: Browser
  readonly proxy: EgressProxy
}

export class NativeDriver implements Driver {
  readonly #host: NativeHost
  readonly #config: NativeConfig
  readonly #guard: UrlGuard
  #running: Promise<Running> | undefined
  /** In the order of their last use. */
  readonly #clients = new Map<ClientId, Promise<ClientContext>>()
  /** Ends what waits for somebody to be idle. */
  #idle = new AbortController()

  constructor(host: NativeHost, config: NativeConfig, guard: UrlGuard) {
    this.#host = host
    this.#config = config
    this.#guard = guard
  }

  async run(action: Action, { client, signal }: ToolContext): Promise<string> {
    if (action.action === 'open') await this.#guard.addresses(this.#guard.page(action.url).hostname, signal)
    const waiting = this.#clientOf(client, action.action !== 'open')
    if (!waiting) return action.action === 'close' ? 'Closed.' : noPage()
    const context = await untilAborted(waiting, signal, 'the action was aborted')
    try {
      return await context.lane.run(() => context.run(action as BrowserAction, signal))
    } finally {
      context.usedAtMs = this.#host.clock.monotonicMs()
      if (context.isClosed) await this.#forget(client, waiting)
    }
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

  /** The client's context, now its latest use. */
  #clientOf(client: ClientId, onlyIfOpen: boolean): Promise<ClientContext> | undefined {
    const known = this.#clients.get(client)
    if (!known && onlyIfOpen) return undefined
    const context = known ?? this.#openFor()
    this.#clients.delete(client)
    this.#clients.set(client, context)
    if (!known) {
      void this.#closeWhenIdle(client, context).catch(() => this.#forget(client, context))
    }
    return context
  }

  async #openFor(): Promise<ClientContext> {
    await this.#makeRoom()
    this.#running ??= this.#start()
    const running = await this.#running
    const context = await ClientContext.open({ ...running, guard: this.#guard, saveImage: saveImage(this.#host) })
    context.usedAtMs = this.#host.clock.monotonicMs()
    return context
  }

  async #makeRoom(): Promise<void> {
    if (this.#clients.size < CLIENTS_MAX) return
    for (const [client, waiting] of this.#clients) {
      const context = await waiting.catch(() => undefined)
      if (context && !context.lane.isIdle) continue
      this.#clients.delete(client)
      await context?.close()
      return
    }
    throw new AppError('unavailable', 'all browsers are busy', { retryAfterSecs: 10 })
  }

  /** One for each context, as long as it is there. */
  async #closeWhenIdle(client: ClientId, waiting: Promise<ClientContext>): Promise<void> {
    const { clock } = this.#host
    const { signal } = this.#idle
    const context = await waiting
    for (let idleMs = 0; idleMs < IDLE_MS; idleMs = context.lane.isIdle ? clock.monotonicMs() - context.usedAtMs : 0) {
      await clock.sleep(IDLE_MS - idleMs, signal)
      if (signal.aborted || context.isClosed) return
    }
    // Whoever comes from here on gets a new one.
    this.#clients.delete(client)
    await context.close()
    await this.#stopIfUnused()
  }

  async #forget(client: ClientId, waiting: Promise<ClientContext>): Promise<void> {
    if (this.#clients.get(client) === waiting) this.#clients.delete(client)
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
