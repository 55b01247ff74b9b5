/** The dashboard in a real browser, against the built bundle: docs/dashboard.md. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { foundChromium, launchChromium, signedIn, type Watched, watchedPage, whySkipped } from './page-daemon.ts'
import { HOSTILE, LONG_LINE, type PageWorld, startPageWorld } from './page-world.ts'

const SOON = { timeout: 15_000 }
/** What the text of a message must never become. */
const FOREIGN = 'main img, main script, main iframe, main a[href^="javascript:"], main a[href*="attacker"]'

describe.skipIf('missing' in foundChromium)(`the dashboard in a browser${whySkipped}`, () => {
  let world: PageWorld
  let browser: Browser
  const opened: Watched[] = []

  beforeAll(async () => {
    world = await startPageWorld()
    browser = await launchChromium()
  }, 120_000)
  afterEach(async () => {
    const faults = opened.flatMap((watched) => watched.faults)
    for (const { page } of opened.splice(0)) await page.context().close()
    expect(faults).toEqual([])
  })
  afterAll(async () => {
    await browser?.close()
    await world?.stop()
  })

  const open = async (options?: Parameters<typeof signedIn>[2]): Promise<Page> => {
    const watched = await signedIn(browser, world.gateway, options)
    opened.push(watched)
    return watched.page
  }
  const go = async (page: Page, place: string, title: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor({ state: 'attached' })
  }
  const say = async (page: Page, text: string) => {
    const input = page.getByRole('textbox', { name: 'Message' })
    await input.fill(text)
    await input.press('Enter')
  }

  test('a link signs a browser in once, and nothing of it stays in the address or in storage', async () => {
    const link = await world.gateway.link()
    const first = await watchedPage(await browser.newContext(), world.gateway.address)
    opened.push(first)
    await first.page.goto(link)
    await first.page.getByRole('heading', { name: 'Overview' }).waitFor()
    const code = link.split('#sign-in=')[1] ?? 'none'
    expect(first.page.url()).not.toContain(code)
    const kept = await first.page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')
    expect(kept).not.toContain(code)
    expect(kept).not.toMatch(/sluice_session|token/)
    expect(first.requests.filter((url) => url.includes(code))).toEqual([])
    const second = await watchedPage(await browser.newContext(), world.gateway.address)
    opened.push(second)
    await second.page.goto(link)
    await second.page.getByText('This link was used or has expired').waitFor()
    await first.page.reload()
    await first.page.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  test('an answer arrives in pieces, and can be stopped', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await say(page, 'slowly please')
    const answer = page.getByRole('article', { name: 'Agent' })
    await expect.poll(() => answer.count(), SOON).toBe(1)
    const early = (await answer.textContent()) ?? ''
    await expect.poll(async () => ((await answer.textContent()) ?? '').length, SOON).toBeGreaterThan(early.length)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Aborted.').waitFor()
    await say(page, 'hello')
    await page.getByText('heard: hello').first().waitFor()
    expect(page.url()).toMatch(/#\/chat\/.+/)
    await page.reload()
    await page.getByText('heard: hello').first().waitFor()
  })

  test('a tool call asks in the chat, and runs when it is approved', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await say(page, 'run node --version')
    await page.getByText('May the agent run').waitFor()
    await expect.poll(() => page.locator('.question .block').textContent(), SOON).toContain('node --version')
    await page.locator('.question').getByRole('button', { name: 'Approve' }).click()
    await page.getByText('It says:').first().waitFor()
    await say(page, 'run node -p 2')
    await page.locator('.question').last().getByRole('button', { name: 'Reject' }).click()
    await expect.poll(() => page.locator('.question').last().textContent(), SOON).toContain('rejected')
  })

  test('a dead reply is sent again', async () => {
    world.receiver.status = 400
    await world.send('letter that dies')
    const page = await open()
    await go(page, '/deliveries/outbox?state=dead', 'Deliveries')
    const row = page.getByRole('row').filter({ hasText: 'letter that dies' })
    await row.waitFor()
    await row.getByRole('link').first().click()
    await page.getByRole('heading', { name: /^Reply \d+$/ }).waitFor()
    world.receiver.status = 200
    await page.getByRole('button', { name: 'Send again' }).click()
    await expect.poll(() => world.receiver.bodies.filter((body) => body.includes('letter that dies')).length, SOON).toBe(2)
    await page.locator('.facts').getByText('sent', { exact: true }).waitFor()
  })

  test('a revoked session ends within a second', async () => {
    const page = await open()
    const { devices } = (await world.gateway.call('GET', '/api/devices')) as { devices: { id: string; name: string; paired_at: string }[] }
    const [newest] = devices.filter(({ name }) => name.startsWith('dashboard')).toSorted((a, b) => b.paired_at.localeCompare(a.paired_at))
    const startedAt = performance.now()
    await world.gateway.call('DELETE', `/api/devices/${newest?.id}`)
    await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor({ timeout: 5000 })
    // The page itself needs a moment on a busy machine; the server's part is measured in its own tests.
    expect(performance.now() - startedAt).toBeLessThan(2000)
  })

  test('two pages show the same conversation', async () => {
    const page = await open()
    const other = await page.context().newPage()
    await go(page, '/chat', 'Chat')
    await say(page, 'first words')
    await page.getByText('heard: first words').first().waitFor()
    await other.goto(page.url())
    await other.getByText('heard: first words').first().waitFor()
    await say(page, 'second words')
    await other.getByText('heard: second words').first().waitFor(SOON)
    await say(other, 'third words')
    await page.getByText('heard: third words').first().waitFor(SOON)
    for (const one of [page, other])
      for (const word of ['first', 'second', 'third']) expect(await one.getByText(`heard: ${word} words`, { exact: true }).count()).toBe(1)
  })

  test('a client sees its own conversations and nothing for operators', async () => {
    const context = await browser.newContext()
    const watched = await watchedPage(context, world.gateway.address)
    opened.push(watched)
    await watched.page.goto(await world.gateway.link('client'))
    await watched.page.getByRole('textbox', { name: 'Message' }).waitFor()
    expect(await watched.page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()).toEqual(['Chat', 'Approvals'])
  })

  test('hostile texts stay text on every page', async () => {
    for (const text of HOSTILE) await world.send(text)
    world.receiver.status = 400
    await world.send(LONG_LINE)
    await world.gateway.call('POST', '/api/channel-events', {
      type: 'human_approval_request',
      content: { title: HOSTILE[0], message: HOSTILE.join('\n') },
      channels: ['dashboard'],
      run_id: 'hostile',
      step_id: 'one',
      workflow_name: HOSTILE[1],
    })
    await world.gateway.call('POST', '/api/devices', { name: '<img src=x onerror=window.hacked=1>' })
    const page = await open()
    await go(page, '/chat', 'Chat')
    for (const text of HOSTILE) {
      await say(page, text.replaceAll('\u0000', ''))
      await page.waitForTimeout(200)
    }
    for (const [place, title] of PLACES) {
      await go(page, place, title)
      await page.waitForTimeout(400)
      expect(await page.evaluate('window.hacked'), place).toBeUndefined()
      const found = await page.evaluate(`document.querySelectorAll('${FOREIGN}').length`)
      expect(found, place).toBe(0)
      expect(await page.evaluate(String.raw`/[\u202a-\u202e\u2066-\u2069\u0000\u001b]/.test(document.body.innerText)`), place).toBe(false)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), `${place} is wider than its window`).toBe(true)
    }
    const { messages } = (await world.gateway.call('GET', '/api/deliveries/inbox?limit=20')) as { messages: { number: number }[] }
    for (const { number } of messages.slice(0, 6)) {
      await go(page, `/deliveries/inbox/${number}`, `Message ${number}`)
      await page.getByRole('heading', { name: 'Request as it arrived' }).waitFor()
      expect(await page.evaluate('window.hacked')).toBeUndefined()
    }
  })
})

/** Every place of the page, with its title. */
const PLACES = [
  ['/', 'Overview'],
  ['/chat', 'Chat'],
  ['/approvals', 'Approvals'],
  ['/deliveries/inbox', 'Deliveries'],
  ['/deliveries/outbox', 'Deliveries'],
  ['/procedures', 'Procedures'],
  ['/devices', 'Devices'],
  ['/tools', 'Tools and skills'],
  ['/features', 'Features'],
  ['/logs', 'Logs and events'],
] as const
