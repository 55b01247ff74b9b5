/** From what the model names to an element. */
import { AppError } from '@sluice/sdk'
import type { Locator, Page } from 'playwright-core'
import type { BrowserAction } from '../actions.ts'

/** An `@ref` of the last snapshot, or a selector of the library's: CSS, `text=...`. Throws `not_found` for a ref that is gone. */
export async function locate(page: Page, selector: string): Promise<Locator> {
  const ref = /^@((?:f\d+)?e\d+)$/.exec(selector)?.[1]
  if (ref === undefined) return page.locator(selector)
  const found = page.getByRef(ref)
  // It will not come back by waiting.
  if ((await found.count().catch(() => 0)) === 0) throw new AppError('not_found', `${selector} is not on the page; take a new snapshot`)
  return found
}

type Find = Extract<BrowserAction, { action: 'find' }>

/** The first of those that fit. */
export function locateBy(page: Page, { by, value }: Pick<Find, 'by' | 'value'>): Locator {
  const found = {
    role: () => page.getByRole(value as Parameters<Page['getByRole']>[0]),
    text: () => page.getByText(value),
    label: () => page.getByLabel(value),
    placeholder: () => page.getByPlaceholder(value),
    testid: () => page.getByTestId(value),
  }[by]()
  return found.first()
}
