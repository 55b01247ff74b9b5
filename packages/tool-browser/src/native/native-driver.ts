/** The backend `native`: one installed Chromium for all clients, which starts with the first page and ends with the last. */
import { join } from 'node:path'
import { PerClient, SerialQueue, untilAborted } from '@sluice/kit'
import { AppError, buildHint, type ClientId, errorText, type Finding, type Host, type ToolContext } from '@sluice/sdk'
import type { Action, BrowserAction } from '../actions.ts'
import type { OptionalDriver } from '../backend.ts'
import type { BrowserConfig } from '../config.ts'
import { EgressProxy } from '../egress/egress-proxy.ts'
import type { UrlGuard } from '../url-guard.ts'
import { ClientContext, noPageOpen, type RunningBrowser } from './client-context.ts'
import { CHROMIUM_HINT, missingForNative, notInBuild } from './find-chromium.ts'
import { type BrowserLibrary, canSandboxPages, launchChromium } from './launch-chromium.ts'

const CLIENTS_MAX = 16
const IDLE_MS = 600_000
const ACTIONS_MAX = 8
const ACTIONS_RETRY_SECS = 5
const CLIENTS_RETRY_SECS = 10

interface Client {
  /** Runs the client's actions one at a time. It is idle only while no action runs or waits, from the creation of the client on. */
  readonly queue: SerialQueue
  readonly opening: Promise<ClientContext>
  /** When the last action ended, in monotonic milliseconds. */
  usedAtMs: number
}

export class NativeDriver implements OptionalDriver {
  readonly #host: Host
  readonly #config: BrowserConfig
  readonly #guard: UrlGuard
  #running: Promise<RunningBrowser> | undefined
  /** In the order of their last use. */
  readonly #clients = new PerClient<Client>('browser contexts', CLIENTS_MAX)
  /** Cancels the idle timers of all clients. */
  #idleTimers = new AbortController()

  constructor(host: Host, config: BrowserConfig, guard: UrlGuard) {
    this.#host = host
    this.#config = config
    this.#guard = guard
  }

  async run(action: Action, call: ToolContext): Promise<string> {
    const { client: id, signal } = call
    this.#library()
    if (action.action === 'open') await this.#guard.addresses(this.#guard.page(action.url).hostname, signal)
    const client = this.#clients.find(id) ?? (action.action === 'open' ? this.#newClient(id) : undefined)
    if (!client) {
      if (action.action === 'close') return 'Closed.'
      throw noPageOpen()
    }
    this.#clients.keep(id, client)
    return client.queue.run(() => this.#act(client, action as BrowserAction, call))
  }

  async unusableReason(): Promise<string | undefined> {
    return missingForNative(this.#host.service('browserLibrary'), this.#config.native_chrome_path)
  }

  async check(): Promise<readonly Finding[]> {
    const { clock } = this.#host
    const startedMs = clock.monotonicMs()
    try {
      const { browser, proxy } = await this.#launch()
      const version = browser.version()
      await Promise.all([browser.close(), proxy.close()])
      const detail = `Chromium ${version} started in ${Math.round(clock.monotonicMs() - startedMs)} ms`
      if (canSandboxPages()) return [{ status: 'ok', detail }]
      return [{ status: 'warn', detail: `${detail}; it cannot sandbox its pages as root`, fix: 'run Sluice as a user other than root' }]
    } catch (error) {
      const isLeftOut = error instanceof AppError && error.code === 'not_compiled'
      return [{ status: 'fail', detail: errorText(error), fix: isLeftOut ? buildHint('tool-browser-native') : CHROMIUM_HINT }]
    }
  }

  /** Throws `not_compiled` in a build without this backend. */
  #library(): BrowserLibrary {
    const library = this.#host.service('browserLibrary')
    if (library) return library
    const build = buildHint('tool-browser-native')
    throw new AppError('not_compiled', `The browser cannot be used: ${notInBuild()}`, { fields: { feature: 'tool-browser-native', build } })
  }

  async close(): Promise<void> {
    this.#idleTimers.abort()
    this.#idleTimers = new AbortController()
    await this.#stop()
  }

  async #act(client: Client, action: BrowserAction, call: ToolContext): Promise<string> {
    const context = await untilAborted(client.opening, call.signal, 'The action was aborted')
    try {
      return await context.run(action, call)
    } finally {
      client.usedAtMs = this.#host.clock.monotonicMs()
      if (context.isClosed) await this.#forget(call.client, client)
    }
  }

  /** Throws `unavailable` when there are `CLIENTS_MAX` clients and none of them is idle. */
  #newClient(id: ClientId): Client {
    const client: Client = {
      queue: new SerialQueue({
        name: 'the browser page of this client',
        tasksMax: ACTIONS_MAX,
        refusal: 'rate_limited',
        retryAfterSecs: ACTIONS_RETRY_SECS,
      }),
      opening: this.#openContext(this.#evictIfFull()),
      usedAtMs: this.#host.clock.monotonicMs(),
    }
    void this.#closeWhenIdle(id, client).catch(() => this.#forget(id, client))
    return client
  }

  /** Opens a context after closing that of the evicted client. Starts the browser if it does not run. */
  async #openContext(evicted: Client | undefined): Promise<ClientContext> {
    const previous = await evicted?.opening.catch(() => undefined)
    await previous?.close()
    this.#running ??= this.#start()
    return ClientContext.open(await this.#running, this.#guard)
  }

  /** Removes and returns the client that has been idle for longest, if there are `CLIENTS_MAX` clients. */
  #evictIfFull(): Client | undefined {
    if (this.#clients.size < CLIENTS_MAX) return undefined
    for (const [id, client] of this.#clients.entries()) {
      if (!client.queue.isIdle) continue
      this.#clients.forget(id)
      return client
    }
    throw new AppError('unavailable', 'All browser contexts are busy', { retryAfterSecs: CLIENTS_RETRY_SECS })
  }

  /** Closes the context of a client that has been idle for `IDLE_MS`. */
  async #closeWhenIdle(id: ClientId, client: Client): Promise<void> {
    const { clock } = this.#host
    const { signal } = this.#idleTimers
    const context = await client.opening
    for (let idleMs = 0; idleMs < IDLE_MS; idleMs = client.queue.isIdle ? clock.monotonicMs() - client.usedAtMs : 0) {
      await clock.sleep(IDLE_MS - idleMs, signal)
      if (signal.aborted || context.isClosed) return
    }
    // Forget the client first, so that its next action opens a new context instead of using the closing one.
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

  /** Starts the browser, and forgets it and all clients when it does not start or its process ends. */
  #start(): Promise<RunningBrowser> {
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

  async #launch(): Promise<RunningBrowser> {
    const proxy = await EgressProxy.start(this.#guard)
    try {
      const browser = await launchChromium({
        library: this.#library(),
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
    await browser?.close().catch((error: unknown) => this.#host.log.warn('browser close failed', { error }))
    await proxy?.close()
  }
}
