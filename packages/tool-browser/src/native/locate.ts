/** From what the model names to an element. */
import type { Locator, Page } from 'playwright-core'
import type { BrowserAction } from '../actions.ts'

/** An `@ref` of the last snapshot, or a selector of the library's: CSS, `text=...`. */
export function locate(page: Page, selector: string): Locator {
  const ref = /^@?(?:ref=)?((?:f\d+)?e\d+)$/.exec(selector)?.[1]
  return ref !== undefined && selector.startsWith('@') ? page.getByRef(ref) : page.locator(selector)
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
