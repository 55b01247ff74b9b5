/** One client's part of the browser: its own cookies, pages and pass. It ends with its last page. */
import { signalScope } from '@sluice/kit'
import { AppError, errorText, type ToolContext, type Workspace } from '@sluice/sdk'
import type { Browser, BrowserContext, Page, Response, Route } from 'playwright-core'
import type { BrowserAction } from '../actions.ts'
import type { EgressProxy } from '../egress/egress-proxy.ts'
import type { Pass } from '../egress/pass.ts'
import { isWeb, type UrlGuard } from '../url-guard.ts'
import { pageError } from './page-error.ts'
import { CLOSE_MS_MAX, Pages, settlesWithin } from './pages.ts'
import { perform, whereabouts } from './perform.ts'

const NOTES_MAX = 10
const OPEN_MS_MAX = 30_000
const OPEN_TRIES_MAX = 3
const RETRY_MS = 200
/** The limit of any action, so that a page that never answers does not block its client for longer. */
const ACTION_MS_MAX = 60_000

/** A started Chromium and the proxy that is its only access to the network. */
export interface RunningBrowser {
  readonly browser: Browser
  readonly proxy: EgressProxy
}

export class ClientContext {
  readonly #context: BrowserContext
  readonly #proxy: EgressProxy
  readonly #pass: Pass
  readonly #guard: UrlGuard
  readonly #openMsMax: number
  readonly #pages = new Pages((text) => this.#note(text))
  /** Lines for the model, added to the next result. */
  #notes: string[] = []
  #isClosed = false

  private constructor(context: BrowserContext, proxy: EgressProxy, pass: Pass, guard: UrlGuard, openMsMax: number) {
    this.#context = context
    this.#proxy = proxy
    this.#pass = pass
    this.#guard = guard
    this.#openMsMax = openMsMax
    context.on('page', (page) => this.#pages.add(page))
    context.on('close', () => this.#release())
  }

  /** `openMsMax` limits how long a page may take to open. */
  static async open({ browser, proxy }: RunningBrowser, guard: UrlGuard, openMsMax = OPEN_MS_MAX): Promise<ClientContext> {
    const pass = proxy.issue()
    const { username, password } = pass
    try {
      const context = await browser.newContext({
        proxy: { server: proxy.url, bypass: '<-loopback>', username, password },
        serviceWorkers: 'block',
        acceptDownloads: false,
      })
      const client = new ClientContext(context, proxy, pass, guard, openMsMax)
      await context.route('**', (route) => client.#onRequest(route))
      return client
    } catch (error) {
      proxy.revoke(pass)
      throw error
    }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Performs one action. Throws an `AppError`. Closes the current page when the action is aborted or takes too long. */
  async run(action: BrowserAction, { signal: callSignal, workspace }: Pick<ToolContext, 'signal' | 'workspace'>): Promise<string> {
    using limit = signalScope([callSignal], ACTION_MS_MAX)
    const { signal } = limit
    const stopped = Promise.withResolvers<never>()
    const onAbort = () =>
      stopped.reject(callSignal.aborted ? aborted() : new AppError('upstream_timeout', 'The page did not answer in time'))
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      if (signal.aborted) throw aborted()
      const result = await Promise.race([this.#act(action, workspace, signal), stopped.promise])
      return [result, ...this.#takeNotes()].join('\n')
    } catch (error) {
      const known = callSignal.aborted ? aborted() : pageError(error)
      if (signal.aborted) await this.#discardPage()
      else if (known.code === 'upstream_timeout' && (await this.#pages.isCurrentStuck())) {
        await this.#discardPage()
        this.#note('the page no longer answered and was discarded; open it again, or another one')
      }
      const notes = this.#takeNotes()
      throw notes.length === 0 ? known : new AppError(known.code, [known.message, ...notes].join('\n'), { cause: error })
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** Ends the client's access to the network at once, then its pages. */
  async close(): Promise<void> {
    this.#release()
    await settlesWithin(this.#context.close(), CLOSE_MS_MAX)
  }

  async #act(action: BrowserAction, workspace: Workspace, signal: AbortSignal): Promise<string> {
    if (action.action === 'open') return this.#open(action.url, signal)
    const page = this.#pages.current
    if (action.action === 'close') return this.#closePage(page)
    if (!page) throw noPageOpen()
    return perform(page, action, workspace, signal)
  }

  async #open(text: string, signal: AbortSignal): Promise<string> {
    const url = this.#guard.page(text)
    const page = this.#pages.current ?? (await this.#context.newPage())
    try {
      const answer = await goTo(page, url.href, this.#openMsMax, signal)
      const refusal = this.#takeRefusal(URL.parse(page.url())?.hostname)
      if (refusal !== undefined) throw new AppError('forbidden', refusal)
      const status = answer && !answer.ok() ? `\nHTTP ${answer.status()}` : ''
      return `Opened.\n${await whereabouts(page)}${status}`
    } catch (error) {
      const refusal = this.#takeRefusal()
      throw refusal === undefined || signal.aborted ? error : new AppError('forbidden', refusal, { cause: error })
    }
  }

  async #closePage(page: Page | undefined): Promise<string> {
    await page?.close()
    const previous = this.#pages.current
    if (previous) return `Closed. The previous page is the current one.\n${await whereabouts(previous)}`
    await this.close()
    return 'Closed.'
  }

  /** Checks every request except the ones that only the proxy sees: redirects, WebSockets and Chromium's own requests. */
  async #onRequest(route: Route): Promise<void> {
    const request = route.request()
    const isPage = request.isNavigationRequest()
    const url = URL.parse(request.url())
    try {
      if (!url || (!isWeb(url) && isPage)) throw new AppError('forbidden', `Only http and https pages can be opened; got ${url?.protocol}`)
      if (isWeb(url)) {
        this.#guard.admit(url.hostname)
        if (isPage) await this.#guard.addresses(url.hostname)
      }
      await route.continue()
    } catch (error) {
      if (error instanceof AppError && error.code === 'forbidden') this.#pass.refuse({ host: url?.hostname ?? '', reason: error.message })
      // A refused page gets an answer, because the library would wait for the end of a navigation that is only aborted.
      const refusal = { status: 403, contentType: 'text/plain; charset=utf-8', body: `Sluice: ${errorText(error)}\n` }
      await (isPage ? route.fulfill(refusal) : route.abort('blockedbyclient')).catch(() => undefined)
    }
  }

  /** Returns why a request to `hostname`, or to any host, was refused since the last action. Other refusals become notes. */
  #takeRefusal(hostname?: string): string | undefined {
    const refusals = this.#pass.takeRefusals()
    const relevant = refusals.find(({ host }) => hostname === undefined || host === hostname)
    for (const refusal of refusals) if (refusal !== relevant) this.#note(`refused: ${refusal.reason}`)
    return relevant?.reason
  }

  #note(text: string): void {
    const line = `[${text}]`
    if (this.#notes.length < NOTES_MAX && !this.#notes.includes(line)) this.#notes.push(line)
  }

  #takeNotes(): readonly string[] {
    for (const { reason } of this.#pass.takeRefusals()) this.#note(`refused: ${reason}`)
    const taken = this.#notes
    this.#notes = []
    return taken
  }

  async #discardPage(): Promise<void> {
    if (!(await this.#pages.discardCurrent())) await this.close()
  }

  #release(): void {
    this.#isClosed = true
    this.#proxy.revoke(this.#pass)
  }
}

/** Loads a page until its document is parsed. A page that redirects itself meanwhile counts as opened. */
async function goTo(page: Page, url: string, timeout: number, signal: AbortSignal): Promise<Response | null> {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await page.goto(url, { timeout, signal, waitUntil: 'commit' })
      await page.waitForLoadState('domcontentloaded', { timeout, signal })
      return answer
    } catch (error) {
      // The previous page was navigating by itself at the same time.
      const interrupted = errorText(error).includes('interrupted by another navigation')
      if (!interrupted || tries === OPEN_TRIES_MAX) throw error
      await page.waitForLoadState('domcontentloaded', { timeout, signal })
      // A navigation that an earlier try began has ended after all. Its answer is not known.
      if (errorText(error).includes(`by another navigation to "${url}"`)) return null
      await page.waitForTimeout(RETRY_MS)
    }
  }
}

export const noPageOpen = () => new AppError('conflict', "No page is open; begin with action 'open'")
const aborted = () => new AppError('aborted', 'The action was aborted')
