/** What one client has of the browser: cookies, pages and a pass of its own, gone with its last page. */

import { signalScope } from '@sluice/kit'
import { AppError, errorText } from '@sluice/sdk'
import type { Browser, BrowserContext, Page, Response, Route } from 'playwright-core'
import type { BrowserAction } from '../actions.ts'
import type { EgressProxy } from '../egress/egress-proxy.ts'
import type { Pass } from '../egress/pass.ts'
import { isWeb, type UrlGuard } from '../url-guard.ts'
import { pageError } from './page-error.ts'
import { type PerformOptions, perform, whereabouts } from './perform.ts'

const PAGES_MAX = 5
const NOTES_MAX = 10
const OPEN_MS_MAX = 30_000
const OPEN_TRIES_MAX = 3
const SETTLE_MS = 200
/** Of any action: a page that spins does not hold its client for longer. */
const ACTION_MS_MAX = 60_000
const CLOSE_MS_MAX = 5000
/** A page whose scripts leave it any time answers within this. */
const ANSWER_MS_MAX = 2000
const DISCARDED = 'the page did not answer any more and was discarded; open it again, or another one'

export interface ClientContextDeps {
  readonly browser: Browser
  readonly proxy: EgressProxy
  readonly guard: UrlGuard
  readonly saveImage: PerformOptions['saveImage']
  /** How long a page may take to open. */
  readonly openMsMax?: number
}

export class ClientContext {
  readonly #deps: ClientContextDeps
  readonly #pass: Pass
  readonly #context: BrowserContext
  /** The last one is what actions are done on. */
  #pages: Page[] = []
  #notes: string[] = []
  #isClosed = false

  private constructor(deps: ClientContextDeps, pass: Pass, context: BrowserContext) {
    this.#deps = deps
    this.#pass = pass
    this.#context = context
    context.on('page', (page) => this.#adopt(page))
    context.on('close', () => this.#leave())
  }

  static async open(deps: ClientContextDeps): Promise<ClientContext> {
    const pass = deps.proxy.issue()
    const { username, password } = pass
    try {
      const context = await deps.browser.newContext({
        proxy: { server: deps.proxy.url, bypass: '<-loopback>', username, password },
        serviceWorkers: 'block',
        acceptDownloads: false,
      })
      const client = new ClientContext(deps, pass, context)
      await context.route('**', (route) => client.#onRequest(route))
      return client
    } catch (error) {
      deps.proxy.revoke(pass)
      throw error
    }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Throws an `AppError`. An action that is aborted or takes too long costs the page it was on. */
  async run(action: BrowserAction, given: AbortSignal): Promise<string> {
    using limit = signalScope([given], ACTION_MS_MAX)
    const { signal } = limit
    const stop = Promise.withResolvers<never>()
    const onAbort = () => stop.reject(given.aborted ? aborted() : new AppError('upstream_timeout', 'the page did not answer in time'))
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      if (signal.aborted) throw aborted()
      const done = await Promise.race([this.#act(action, signal), stop.promise])
      return [done, ...this.#takeNotes()].join('\n')
    } catch (error) {
      const known = given.aborted ? aborted() : pageError(error)
      if (signal.aborted) await this.#dropPage()
      else if (known.code === 'upstream_timeout' && (await this.#dropStuckPage())) this.#note(DISCARDED)
      const notes = this.#takeNotes()
      throw notes.length === 0 ? known : new AppError(known.code, [known.message, ...notes].join('\n'), { cause: error })
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
  }

  async close(): Promise<void> {
    this.#leave()
    await withinTime(this.#context.close())
  }

  async #act(action: BrowserAction, signal: AbortSignal): Promise<string> {
    if (action.action === 'open') return this.#open(action.url, signal)
    const page = this.#pages.at(-1)
    if (action.action === 'close') return this.#closePage(page)
    if (!page) throw new AppError('conflict', "no page is open; begin with action 'open'")
    return perform(page, action, { signal, saveImage: this.#deps.saveImage })
  }

  async #open(text: string, signal: AbortSignal): Promise<string> {
    const url = this.#deps.guard.page(text)
    const page = this.#pages.at(-1) ?? (await this.#context.newPage())
    try {
      const answer = await goTo(page, url.href, { timeout: this.#deps.openMsMax ?? OPEN_MS_MAX, signal })
      const arrived = URL.parse(page.url())
      const refused = this.#refused(arrived?.hostname)
      if (refused !== undefined) throw new AppError('forbidden', refused)
      const status = answer && !answer.ok() ? `\nHTTP ${answer.status()}` : ''
      return `Opened.\n${await whereabouts(page)}${status}`
    } catch (error) {
      const refused = this.#refused()
      throw refused === undefined || signal.aborted ? error : new AppError('forbidden', refused, { cause: error })
    }
  }

  async #closePage(page: Page | undefined): Promise<string> {
    await page?.close()
    const before = this.#pages.at(-1)
    if (before) return `Closed. The page before is the current one.\n${await whereabouts(before)}`
    await this.close()
    return 'Closed.'
  }

  #adopt(page: Page): void {
    if (this.#pages.length > 0) this.#note('a new page opened and is the current one; close it to go back')
    this.#pages.push(page)
    page.on('close', () => {
      this.#pages = this.#pages.filter((other) => other !== page)
    })
    page.on('dialog', (dialog) => {
      // Leaving a page is what was asked for; to anything else the answer is no.
      if (dialog.type() === 'beforeunload') return void dialog.accept().catch(() => undefined)
      this.#note(`a dialog (${dialog.type()}) was dismissed: ${dialog.message().slice(0, 200)}`)
      void dialog.dismiss().catch(() => undefined)
    })
    page.on('download', () => this.#note('a download was refused'))
    page.on('crash', () => void page.close().catch(() => undefined))
    if (this.#pages.length > PAGES_MAX)
      void this.#pages
        .shift()
        ?.close()
        .catch(() => undefined)
  }

  /** Every request but for those the proxy alone sees: redirects, sockets, the browser's own. */
  async #onRequest(route: Route): Promise<void> {
    const request = route.request()
    const isPage = request.isNavigationRequest()
    const url = URL.parse(request.url())
    try {
      if (!url || (!isWeb(url) && isPage)) throw new AppError('forbidden', `${url?.protocol ?? 'such'} pages are not opened`)
      if (isWeb(url)) {
        this.#deps.guard.admit(url.hostname)
        if (isPage) await this.#deps.guard.addresses(url.hostname)
      }
      await route.continue()
    } catch (error) {
      if (error instanceof AppError && error.code === 'forbidden') this.#pass.refuse({ host: url?.hostname ?? '', why: error.message })
      // A page that says so: a navigation that is merely cut off leaves the library waiting for its end.
      const refusal = { status: 403, contentType: 'text/plain; charset=utf-8', body: `Sluice: ${errorText(error)}\n` }
      await (isPage ? route.fulfill(refusal) : route.abort('blockedbyclient')).catch(() => undefined)
    }
  }

  /** Why this host, or any, was refused lately; it is then a note no more. */
  #refused(hostname?: string): string | undefined {
    const refusals = this.#pass.takeRefusals()
    const about = refusals.find(({ host }) => hostname === undefined || host === hostname)
    for (const refusal of refusals) if (refusal !== about) this.#note(`refused: ${refusal.why}`)
    return about?.why
  }

  #note(text: string): void {
    const line = `[${text}]`
    if (this.#notes.length < NOTES_MAX && !this.#notes.includes(line)) this.#notes.push(line)
  }

  #takeNotes(): readonly string[] {
    for (const { why } of this.#pass.takeRefusals()) this.#note(`refused: ${why}`)
    const taken = this.#notes
    this.#notes = []
    return taken
  }

  /** A page whose script never ends loads nothing else either. Whether it was one. */
  async #dropStuckPage(): Promise<boolean> {
    const page = this.#pages.at(-1)
    if (!page || (await withinTime(page.evaluate('1'), ANSWER_MS_MAX))) return false
    await this.#dropPage()
    return true
  }

  async #dropPage(): Promise<void> {
    const page = this.#pages.pop()
    if (page && !(await withinTime(page.close()))) await this.close()
  }

  #leave(): void {
    this.#isClosed = true
    this.#deps.proxy.revoke(this.#pass)
  }
}

/** A page that leaves for another as soon as it is there counts as opened: what it left for is what is shown. */
async function goTo(
  page: Page,
  url: string,
  options: { readonly timeout: number; readonly signal: AbortSignal },
): Promise<Response | null> {
  for (let tries = 1; ; tries++) {
    try {
      const answer = await page.goto(url, { ...options, waitUntil: 'commit' })
      await page.waitForLoadState('domcontentloaded', options)
      return answer
    } catch (error) {
      // The page before was just leaving by itself.
      if (tries === OPEN_TRIES_MAX || !errorText(error).includes('interrupted by another navigation')) throw error
      await page.waitForTimeout(SETTLE_MS)
    }
  }
}

const aborted = () => new AppError('aborted', 'the action was aborted')

/** Whether it ended; what does not is left to itself. */
const withinTime = (work: Promise<unknown>, ms = CLOSE_MS_MAX): Promise<boolean> => {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), ms)
  timer.unref()
  void work.then(
    () => resolve(true),
    () => resolve(true),
  )
  return promise.finally(() => clearTimeout(timer))
}
