/** Whatever happens to the page, the network or the daemon, a message that a person sent is there with its answer. */
import { seededRandom } from '@sluice/testkit/random'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { foundChromium, launchChromium, signedIn, type Watched, whySkipped } from './page-daemon.ts'
import { type PageWorld, startPageWorld } from './page-world.ts'

/** `SLUICE_CHAT_SEQUENCES=200` runs many. */
const SEQUENCES = Number(process.env.SLUICE_CHAT_SEQUENCES ?? 10)
const SOON = { timeout: 30_000 }

describe.skipIf('missing' in foundChromium)(`a durable chat${whySkipped}`, () => {
  let world: PageWorld
  let browser: Browser

  beforeAll(async () => {
    world = await startPageWorld()
    browser = await launchChromium()
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    await world?.stop()
  })

  const begin = async (): Promise<Watched> => {
    const watched = await signedIn(browser, world.gateway)
    await watched.page.evaluate("location.hash = '/chat'")
    await watched.page.getByRole('textbox', { name: 'Message' }).waitFor()
    return watched
  }
  const say = async (page: Page, text: string) => {
    const input = page.getByRole('textbox', { name: 'Message' })
    await input.fill(text)
    await input.press('Enter')
    await page.locator('article.person', { hasText: text }).first().waitFor()
  }
  test('messages and answers survive every way in which a page, a network and a daemon go away', async () => {
    const random = seededRandom()
    const ways: Readonly<Record<string, (page: Page) => Promise<void>>> = {
      leave: async (page) => void (await page.evaluate("location.hash = '/devices'; setTimeout(() => history.back(), 50)")),
      reload: async (page) => void (await page.reload()),
      offline: async (page) => {
        await page.context().setOffline(true)
        await page.context().setOffline(false)
      },
      kill: () => world.gateway.restart('SIGKILL'),
      restart: () => world.gateway.restart('SIGTERM'),
      suspend: async () => {
        world.gateway.daemon.kill('SIGSTOP')
        world.gateway.daemon.kill('SIGCONT')
      },
    }
    const names = Object.keys(ways)
    const { page, faults } = await begin()
    for (let sequence = 0; sequence < SEQUENCES; sequence++) {
      const text = `message ${sequence} of the person`
      const way = names[Math.floor(random() * names.length)] ?? 'reload'
      await say(page, text)
      await ways[way]?.(page)
      await expect
        .poll(() => page.locator('article.answer', { hasText: `heard: ${text}` }).count(), { ...SOON, message: `${sequence}: ${way}` })
        .toBe(1)
      expect(await page.locator('article.person', { hasText: text }).count(), `${sequence}: ${way}`).toBe(1)
    }
    const { messages } = (await page.evaluate(
      "fetch('api/sessions/' + location.hash.split('/').at(-1) + '/messages?limit=500').then((answer) => answer.json())",
    )) as { messages: readonly { role: string }[] }
    expect(messages.filter(({ role }) => role === 'user')).toHaveLength(SEQUENCES)
    expect(faults).toEqual([])
    await page.context().close()
  }, 600_000)

  test('a question stays while its person looks elsewhere, and is answered after a reload', async () => {
    const { page } = await begin()
    await say(page, 'run node --version')
    await page.getByText('May the agent run').waitFor(SOON)
    await page.getByRole('link', { name: /^Approvals/ }).click()
    await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor()
    await page.locator('.approval').first().waitFor()
    await page.goBack()
    await page.reload()
    await page.locator('.question').getByRole('button', { name: 'Approve' }).click(SOON)
    await page.getByText('It says:').first().waitFor(SOON)
    await page.context().close()
  }, 120_000)

  test('a message that fails stays with its reason after a reload, and is tried again', async () => {
    const { page } = await begin()
    world.model.script({ status: 400, body: { error: { message: 'the model is too small for this' } } })
    await say(page, 'a hard question')
    const reason = page.locator('.note', { hasText: 'the model is too small for this' })
    await reason.waitFor(SOON)
    await page.reload()
    await reason.waitFor(SOON)
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByText('heard: a hard question').first().waitFor(SOON)
    await expect.poll(() => reason.count()).toBe(0)
    expect(await page.locator('article.person', { hasText: 'a hard question' }).count()).toBe(1)
    await page.context().close()
  })

  test('a draft stays with its conversation', async () => {
    const { page } = await begin()
    await page.getByRole('textbox', { name: 'Message' }).fill('half a thought')
    await page.reload()
    await expect.poll(() => page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('half a thought')
    await say(page, 'a whole thought')
    await page.getByText('heard: a whole thought').first().waitFor(SOON)
    expect(await page.getByRole('textbox', { name: 'Message' }).inputValue()).toBe('')
    await page.context().close()
  })

  test('a long conversation keeps few messages in the page', async () => {
    const { page } = await begin()
    await say(page, 'the first of many')
    await page.getByText('heard: the first of many').first().waitFor(SOON)
    const session = page.url().split('/').at(-1) ?? ''
    const post = `fetch('api/turns', {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-sluice-dashboard': '1' },
      body: JSON.stringify({ message: 'one more', session_id: '${session}' }),
    }).then((answer) => answer.text())`
    for (let round = 0; round < 10; round++) await page.evaluate(`Promise.all(Array.from({ length: 8 }, () => ${post}))`)
    await page.reload()
    await page.locator('article.answer').first().waitFor(SOON)
    const earlier = page.getByRole('button', { name: 'Show earlier messages' })
    const first = page.locator('article.person', { hasText: 'the first of many' })
    const shown: number[] = []
    const isBegin = async () => {
      // The button goes once the first message is shown.
      await earlier.click({ timeout: 1000 }).catch(() => undefined)
      shown.push(await page.locator('.messages .said').count())
      return first.isVisible()
    }
    await expect.poll(isBegin, SOON).toBe(true)
    expect(Math.max(...shown)).toBeLessThan(162)
    await page.context().close()
  }, 120_000)
})
