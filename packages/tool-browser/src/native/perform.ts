/** One action on a page; opening and closing are its keeper's. */
import { AppError } from '@sluice/sdk'
import type { Locator, Page } from 'playwright-core'
import type { BrowserAction } from '../actions.ts'
import { locate, locateBy } from './locate.ts'
import { shapeSnapshot } from './shape-snapshot.ts'

const ACTION_MS_MAX = 10_000
const WAIT_MS = 250
/** After what may lead elsewhere: for the page to begin, and then to be there. */
const BEGIN_MS = 150
const ARRIVE_MS_MAX = 10_000

export type PageAction = Exclude<BrowserAction, { action: 'open' | 'close' }>

export interface PerformOptions {
  readonly signal: AbortSignal
  /** Keeps a picture and says where. */
  saveImage(png: Uint8Array, path: string | undefined): Promise<string>
}

/** Rejects with whatever the library throws. */
export async function perform(page: Page, action: PageAction, { signal, saveImage }: PerformOptions): Promise<string> {
  const options = { timeout: ACTION_MS_MAX, signal }
  switch (action.action) {
    case 'snapshot': {
      const { depth } = action
      const snapshot = await page.ariaSnapshot({ ...options, mode: 'ai', ...(depth !== undefined && { depth }) })
      return `${await whereabouts(page)}\n\n${shapeSnapshot(snapshot, action) || '[nothing to be seen]'}`
    }
    case 'click':
      await (await locate(page, action.selector)).click(options)
      return arrival(page, signal, `Clicked ${action.selector}.`)
    case 'hover':
      await (await locate(page, action.selector)).hover(options)
      return `The pointer is over ${action.selector}.`
    case 'fill':
      await (await locate(page, action.selector)).fill(action.value, options)
      return `Filled ${action.selector}.`
    case 'type':
      await (await locate(page, action.selector)).pressSequentially(action.text, options)
      return `Typed into ${action.selector}.`
    case 'get_text':
      return shownText(await locate(page, action.selector), options)
    case 'is_visible':
      return String(await (await locate(page, action.selector)).isVisible())
    case 'get_title':
      return page.title()
    case 'get_url':
      return page.url()
    case 'press':
      await page.keyboard.press(action.key)
      return arrival(page, signal, `Pressed ${action.key}.`)
    case 'wait':
      return waitFor(page, action, signal)
    case 'scroll': {
      const { direction, pixels } = action
      const way = direction === 'up' || direction === 'left' ? -pixels : pixels
      await page.evaluate(direction === 'up' || direction === 'down' ? `scrollBy(0, ${way})` : `scrollBy(${way}, 0)`)
      return `Scrolled ${direction} by ${pixels} pixels.`
    }
    case 'screenshot': {
      const png = await page.screenshot({ ...options, fullPage: action.full_page, type: 'png' })
      return `The screenshot is in ${await saveImage(png, action.path)}.`
    }
    case 'find':
      return find(page, action, options)
  }
}

interface Limits {
  readonly timeout: number
  readonly signal: AbortSignal
}

const shownText = (found: Locator, limits: Limits): Promise<string> =>
  // biome-ignore lint/performance/useDomNodeTextContent: what a person would see is asked for, not what stands in the document
  found.innerText(limits)

type Of<Name extends PageAction['action']> = Extract<PageAction, { action: Name }>

async function find(page: Page, action: Of<'find'>, options: Limits): Promise<string> {
  const found = locateBy(page, action)
  const what = `${action.by} '${action.value}'`
  switch (action.find_action) {
    case 'text':
      return shownText(found, options)
    case 'hover':
      await found.hover(options)
      return `The pointer is over ${what}.`
    case 'check':
      await found.check(options)
      return `Checked ${what}.`
    case 'fill':
      await found.fill(action.fill_value ?? '', options)
      return `Filled ${what}.`
    case 'click':
      await found.click(options)
      return arrival(page, options.signal, `Clicked ${what}.`)
  }
}

async function waitFor(page: Page, { selector, text, ms }: Of<'wait'>, signal: AbortSignal): Promise<string> {
  const options = { timeout: ms ?? ACTION_MS_MAX, signal }
  if (selector !== undefined) {
    await (await locate(page, selector)).waitFor(options)
    return `${selector} is there.`
  }
  if (text !== undefined) {
    if (text === '') throw new AppError('invalid_request', "Action 'wait' needs a 'text' that is not empty")
    await page.getByText(text).first().waitFor(options)
    return `'${text}' is there.`
  }
  await page.waitForTimeout(ms ?? WAIT_MS)
  return `Waited for ${ms ?? WAIT_MS} ms.`
}

/** Where the page is once it had time to go elsewhere. */
async function arrival(page: Page, signal: AbortSignal, done: string): Promise<string> {
  await page.waitForTimeout(BEGIN_MS).catch(() => undefined)
  // A page that never ends loading has still been clicked.
  await page.waitForLoadState('domcontentloaded', { timeout: ARRIVE_MS_MAX, signal }).catch(() => undefined)
  return page.isClosed() ? `${done} The page closed itself.` : `${done}\n${await whereabouts(page)}`
}

export const whereabouts = async (page: Page): Promise<string> => `Page: ${(await page.title()) || '(no title)'}\nURL: ${page.url()}`
