/** The open pages of one client: a stack whose last page is the current one. */
import type { Page } from 'playwright-core'

const PAGES_MAX = 5
/** How long a page or context may take to close. */
export const CLOSE_MS_MAX = 5000
/** A page whose scripts let the browser do anything else answers within this time. */
const ANSWER_MS_MAX = 2000
const MESSAGE_CHARS_MAX = 200

export class Pages {
  /** Reports an event that the model should know about, such as a dismissed dialog. */
  readonly #onNote: (text: string) => void
  #pages: Page[] = []

  constructor(onNote: (text: string) => void) {
    this.#onNote = onNote
  }

  get current(): Page | undefined {
    return this.#pages.at(-1)
  }

  /** Makes a new page the current one, and closes the oldest beyond the bound. */
  add(page: Page): void {
    if (this.#pages.length > 0) this.#onNote('a new page opened and is the current one; close it to go back')
    this.#pages.push(page)
    page.on('close', () => {
      this.#pages = this.#pages.filter((other) => other !== page)
    })
    page.on('dialog', (dialog) => {
      // The model asked to leave the page, so this dialog is accepted; all others are dismissed.
      if (dialog.type() === 'beforeunload') return void dialog.accept().catch(() => undefined)
      this.#onNote(`a dialog (${dialog.type()}) was dismissed: ${dialog.message().slice(0, MESSAGE_CHARS_MAX)}`)
      void dialog.dismiss().catch(() => undefined)
    })
    page.on('download', () => this.#onNote('a download was refused'))
    page.on('crash', () => void page.close().catch(() => undefined))
    const oldest = this.#pages.length > PAGES_MAX ? this.#pages.shift() : undefined
    void oldest?.close().catch(() => undefined)
  }

  /** Closes the current page. Returns false when it does not close in time. */
  async discardCurrent(): Promise<boolean> {
    const page = this.#pages.pop()
    return !page || (await settlesWithin(page.close(), CLOSE_MS_MAX))
  }

  /** Whether the current page's scripts never yield. Such a page cannot load anything else either. */
  async isCurrentStuck(): Promise<boolean> {
    const page = this.current
    return page !== undefined && !(await settlesWithin(page.evaluate('1'), ANSWER_MS_MAX))
  }
}

/** Whether `work` settles within `ms` milliseconds. Work that does not continues unobserved. */
export function settlesWithin(work: Promise<unknown>, ms: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const timer = setTimeout(() => resolve(false), ms)
  timer.unref()
  void work.then(
    () => resolve(true),
    () => resolve(true),
  )
  return promise.finally(() => clearTimeout(timer))
}
