/** Pages that show texts of attackers, and the effects that these must not have. */
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { HOSTILE, LONG_LINE } from './page-world.ts'

/** Elements that the text of a message must never become. */
const FOREIGN = 'main img, main script, main iframe, main a[href^="javascript:"], main a[href*="attacker"]:not([href^="#"])'
/** The elements that reach beyond the window, if the page can be scrolled there. */
const WIDER = `document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll('body *')]
  .filter((part) => part.getBoundingClientRect().right > innerWidth).map((part) => part.tagName + '.' + part.className + ': ' + part.textContent.slice(0, 40))`
const INVISIBLE = String.raw`document.body.innerText.match(/.{0,30}[\u202a-\u202e\u2066-\u2069\u0000\u001b]/g) ?? []`

/** Fails if texts of others make the page run, draw or hide something, or wider than its window. */
export async function expectHarmless(page: Page, place: string): Promise<void> {
  expect(await page.evaluate('window.hacked'), place).toBeUndefined()
  expect(await page.evaluate(`document.querySelectorAll('${FOREIGN}').length`), place).toBe(0)
  expect(await page.evaluate(INVISIBLE), place).toEqual([])
  expect(await page.evaluate(WIDER), `${place} is wider than its window`).toEqual([])
}

/** Each text of these answers, but for times, gets a hostile text after it: any text of an answer may come from anyone. `instead` replaces the real answer. */
export async function spoilAnswers(page: Page, path: string, instead?: object): Promise<void> {
  let count = 0
  const texts = [...HOSTILE, LONG_LINE]
  const spoiled = (value: unknown): unknown => {
    if (typeof value === 'string') return /^\d{4}-\d\d-\d\dT/.test(value) ? value : value + texts[count++ % texts.length]
    if (Array.isArray(value)) return value.map(spoiled)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, spoiled(member)]))
  }
  await page.route(path, async (route) => {
    const answer = instead ?? (await (await route.fetch()).json())
    await route.fulfill({ json: spoiled(answer) })
  })
}
