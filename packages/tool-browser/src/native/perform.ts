/** Performs one action on a page. `ClientContext` handles `open` and `close`. */
import { AppError, type Workspace } from '@sluice/sdk'
import type { Locator, Page } from 'playwright-core'
import type { BrowserAction } from '../actions.ts'
import { saveImage } from '../save-image.ts'
import { shapeSnapshot } from './shape-snapshot.ts'

const ACTION_MS_MAX = 10_000
const WAIT_MS = 250
/** After an action that may load another page: time for the navigation to start, and then to arrive. */
const NAVIGATION_START_MS = 150
const NAVIGATION_MS_MAX = 10_000

export type PageAction = Exclude<BrowserAction, { action: 'open' | 'close' }>
type ActionOf<Name extends PageAction['action']> = Extract<PageAction, { action: Name }>

/** The limits that each call of the library takes. */
interface CallLimits {
  readonly timeout: number
  readonly signal: AbortSignal
}

/** Returns a description of the result. Rejects with the library's errors, and with an `AppError` for a wrong request. */
export async function perform(page: Page, action: PageAction, workspace: Workspace, signal: AbortSignal): Promise<string> {
  const limits = { timeout: ACTION_MS_MAX, signal }
  switch (action.action) {
    case 'snapshot': {
      const { depth } = action
      const snapshot = await page.ariaSnapshot({ ...limits, mode: 'ai', ...(depth !== undefined && { depth }) })
      return `${await whereabouts(page)}\n\n${shapeSnapshot(snapshot, action) || '[nothing visible]'}`
    }
    case 'click':
      await (await locate(page, action.selector)).click(limits)
      return afterNavigation(page, signal, `Clicked ${action.selector}.`)
    case 'hover':
      await (await locate(page, action.selector)).hover(limits)
      return `The pointer is over ${action.selector}.`
    case 'fill':
      await (await locate(page, action.selector)).fill(action.value, limits)
      return `Filled ${action.selector}.`
    case 'type':
      await (await locate(page, action.selector)).pressSequentially(action.text, limits)
      return `Typed into ${action.selector}.`
    case 'get_text':
      return visibleText(await locate(page, action.selector), limits)
    case 'is_visible':
      return String(await (await locate(page, action.selector)).isVisible())
    case 'get_title':
      return page.title()
    case 'get_url':
      return page.url()
    case 'press':
      await page.keyboard.press(action.key)
      return afterNavigation(page, signal, `Pressed ${action.key}.`)
    case 'wait':
      return waitFor(page, action, signal)
    case 'scroll':
      return scroll(page, action)
    case 'screenshot': {
      const png = await page.screenshot({ ...limits, fullPage: action.full_page, type: 'png' })
      return `The screenshot is in ${await saveImage(workspace, png, action.path)}.`
    }
    case 'find':
      return find(page, action, limits)
  }
}

/**
 * Resolves an `@ref` of the last snapshot, or a selector of the library such as CSS or `text=...`. Throws `not_found` for a ref
 * whose element no longer exists, because waiting does not bring it back.
 */
async function locate(page: Page, selector: string): Promise<Locator> {
  const ref = /^@((?:f\d+)?e\d+)$/.exec(selector)?.[1]
  if (ref === undefined) return page.locator(selector)
  const found = page.getByRef(ref)
  if ((await found.count().catch(() => 0)) === 0) throw new AppError('not_found', `${selector} is not on the page; take a new snapshot`)
  return found
}

const visibleText = (found: Locator, limits: CallLimits): Promise<string> =>
  // biome-ignore lint/performance/useDomNodeTextContent: the model asks for the visible text, which excludes hidden elements
  found.innerText(limits)

/** Acts on the first element that matches. */
async function find(page: Page, action: ActionOf<'find'>, limits: CallLimits): Promise<string> {
  const { by, value } = action
  const found = {
    role: () => page.getByRole(value as Parameters<Page['getByRole']>[0]),
    text: () => page.getByText(value),
    label: () => page.getByLabel(value),
    placeholder: () => page.getByPlaceholder(value),
    testid: () => page.getByTestId(value),
  }
    [by]()
    .first()
  const name = `${by} '${value}'`
  switch (action.find_action) {
    case 'text':
      return visibleText(found, limits)
    case 'hover':
      await found.hover(limits)
      return `The pointer is over ${name}.`
    case 'check':
      await found.check(limits)
      return `Checked ${name}.`
    case 'fill':
      await found.fill(action.fill_value ?? '', limits)
      return `Filled ${name}.`
    case 'click':
      await found.click(limits)
      return afterNavigation(page, limits.signal, `Clicked ${name}.`)
  }
}

async function waitFor(page: Page, { selector, text, ms }: ActionOf<'wait'>, signal: AbortSignal): Promise<string> {
  const limits = { timeout: ms ?? ACTION_MS_MAX, signal }
  if (selector !== undefined) {
    await (await locate(page, selector)).waitFor(limits)
    return `${selector} is there.`
  }
  if (text !== undefined) {
    if (text === '') throw new AppError('invalid_request', "Action 'wait' needs a 'text' that is not empty")
    await page.getByText(text).first().waitFor(limits)
    return `'${text}' is there.`
  }
  await page.waitForTimeout(ms ?? WAIT_MS)
  return `Waited for ${ms ?? WAIT_MS} ms.`
}

async function scroll(page: Page, { direction, pixels }: ActionOf<'scroll'>): Promise<string> {
  const distance = direction === 'up' || direction === 'left' ? -pixels : pixels
  await page.evaluate(direction === 'up' || direction === 'down' ? `scrollBy(0, ${distance})` : `scrollBy(${distance}, 0)`)
  return `Scrolled ${direction} by ${pixels} pixels.`
}

/** Waits for a navigation that the action may have caused, and adds the resulting page to `done`. */
async function afterNavigation(page: Page, signal: AbortSignal, done: string): Promise<string> {
  await page.waitForTimeout(NAVIGATION_START_MS).catch(() => undefined)
  // The action succeeded even if the page never finishes loading.
  await page.waitForLoadState('domcontentloaded', { timeout: NAVIGATION_MS_MAX, signal }).catch(() => undefined)
  return page.isClosed() ? `${done} The page closed itself.` : `${done}\n${await whereabouts(page)}`
}

/** Describes the current page in two lines: title and URL. */
export const whereabouts = async (page: Page): Promise<string> => `Page: ${(await page.title()) || '(no title)'}\nURL: ${page.url()}`
