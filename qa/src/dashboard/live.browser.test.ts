/** The dashboard while the daemon dies, the network is slow, and much happens: docs/dashboard.md. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Browser, Page, WebSocketRoute } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startEventSource } from './event-source.ts'
import { ARE_FIGURES_CHECKED, foundChromium, launchChromium, signedIn, type Watched, whySkipped } from './page-daemon.ts'
import { type PageWorld, startPageWorld } from './page-world.ts'
import { median, TRACED, tasksAfterMark } from './trace.ts'

const SOON = { timeout: 20_000 }
const ROWS = 100_000
const BURSTS = 3
const BURSTS_MAX = ARE_FIGURES_CHECKED ? 8 : 1
/** A round in which even a bare page answers later is disturbed by other work of the machine, and is dropped. */
const BARE_TYPING_MS_MAX = 40

describe.skipIf('missing' in foundChromium)(`the dashboard over hours and failures${whySkipped}`, () => {
  let world: PageWorld
  let browser: Browser
  const opened: Watched[] = []

  beforeAll(async () => {
    world = await startPageWorld()
    world.receiver.status = 200
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
  const go = async (page: Page, place: string, title: string | RegExp) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor({ state: 'attached' })
  }
  const numbers = (page: Page): Promise<number[]> =>
    page.evaluate("[...document.querySelectorAll('main tbody th a')].map((link) => Number(link.textContent))")

  /** Opens the events of a page that gets them from a source of its own, and counts what arrives. */
  const openWithEvents = async () => {
    const source = await startEventSource()
    const page = await open({ bypassCSP: true })
    await page.addInitScript(`
      const Own = WebSocket
      window.arrived = 0
      window.WebSocket = class extends Own {
        constructor(url, protocols) {
          super(String(url).includes('/ws/events') ? 'ws://127.0.0.1:${source.port}' : url, protocols)
          this.addEventListener('message', () => window.arrived++)
        }
      }
    `)
    await page.reload()
    await go(page, '/logs', 'Logs and events')
    await source.connected
    return { page, source }
  }

  test('a page outlives a killed daemon: it says so, reconnects, and shows each row once', async () => {
    const page = await open()
    await go(page, '/deliveries/inbox', 'Deliveries')
    await world.send('before the end')
    await expect.poll(async () => (await numbers(page)).length, SOON).toBeGreaterThan(0)
    await world.gateway.kill('SIGKILL')
    await page.getByText('Disconnected since').waitFor()
    const before = await numbers(page)
    expect(before.length).toBeGreaterThan(0)
    await world.gateway.start()
    for (let count = 0; count < 5; count++) await world.send(`after the restart ${count}`)
    await page.getByText('Disconnected since').waitFor({ state: 'detached' })
    const { messages } = (await world.gateway.call('GET', '/api/deliveries/inbox')) as { messages: { number: number }[] }
    await page.waitForTimeout(2000)
    const after = await numbers(page)
    expect(after).toEqual(messages.map(({ number }) => number))
    expect(new Set(after).size).toBe(after.length)
  })

  test('a conversation outlives a killed daemon', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    const input = page.getByRole('textbox', { name: 'Message' })
    await input.fill('said before')
    await input.press('Enter')
    await page.getByText('heard: said before').first().waitFor()
    await world.gateway.restart('SIGKILL')
    await input.fill('said after')
    await input.press('Enter')
    await page.getByText('heard: said after').first().waitFor(SOON)
    expect(await page.getByText('heard: said before', { exact: true }).count()).toBe(1)
  })

  test('a slow network shows what is missing, and the page stays usable', async () => {
    const page = await open()
    const session = await page.context().newCDPSession(page)
    await session.send('Network.enable')
    await session.send('Network.emulateNetworkConditions', {
      offline: false,
      latency: 800,
      downloadThroughput: 20_000,
      uploadThroughput: 10_000,
    })
    await page.evaluate("location.hash = '/features'")
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    await page.getByText('Loading…').first().waitFor()
    await page.getByRole('heading', { name: 'Features', level: 1 }).waitFor()
    await page.getByRole('row').nth(5).waitFor(SOON)
  })

  test('a connection that breaks within a turn is made again, and nothing is missing or shown twice', async () => {
    const page = await open()
    const sockets: { readonly page: WebSocketRoute; readonly server: WebSocketRoute }[] = []
    await page.routeWebSocket(/\/ws\//, (route) => void sockets.push({ page: route, server: route.connectToServer() }))
    await page.reload()
    await go(page, '/chat', 'Chat')
    const say = async (text: string) => {
      const input = page.getByRole('textbox', { name: 'Message' })
      await input.fill(text)
      await input.press('Enter')
    }
    const said = (kind: string) => page.locator(`article.${kind} > :is(.text, .rich)`).allTextContents()
    await say('before')
    await page.getByText('heard: before').first().waitFor(SOON)
    await say('slowly please')
    await page.getByText('one two three').first().waitFor(SOON)
    for (const { page: own, server } of sockets.splice(0)) {
      await own.close({ code: 1001 })
      await server.close({ code: 1001 })
    }
    await page.getByText('Disconnected since').waitFor({ state: 'detached' })
    await expect.poll(() => sockets.length, SOON).toBe(1)
    await say('after')
    await page.getByText('heard: after').first().waitFor(SOON)
    await page.waitForTimeout(2000)
    expect(await said('person')).toEqual(['before', 'slowly please', 'after'])
    expect((await said('answer')).map((text) => text.split(' ', 2).join(' '))).toEqual(['heard: before', 'one two', 'heard: after'])
  })

  test('a turn goes on while its page is loaded again, and its answer is shown', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    const input = page.getByRole('textbox', { name: 'Message' })
    await input.fill('slowly please')
    await input.press('Enter')
    await page.getByText('one two three').first().waitFor(SOON)
    await page.reload()
    // All eight rounds of the answer.
    await expect.poll(async () => (await page.locator('article.answer').last().textContent())?.match(/ten/g)?.length, SOON).toBe(8)
    expect(await page.locator('article.person').count()).toBe(1)
  })

  test('after a gap in the events the page loads again what it shows: lists, and a conversation of two pages', async () => {
    const page = await open()
    let isDeaf = false
    let gap = () => {}
    await page.routeWebSocket(/\/ws\/events/, (route) => {
      const server = route.connectToServer()
      server.onMessage((message) => {
        if (!isDeaf) route.send(message)
      })
      gap = () => route.send(JSON.stringify({ type: 'gap', missed: 3 }))
    })
    await page.reload()
    await go(page, '/deliveries/inbox', 'Deliveries')
    await page.locator('.side .live').getByText('Live', { exact: true }).waitFor()
    // The page asks once more when it has just connected.
    await page.waitForTimeout(6000)
    isDeaf = true
    await world.send('unheard')
    const newest = async () =>
      ((await world.gateway.call('GET', '/api/deliveries/inbox?limit=1')) as { messages: { number: number; state: string }[] }).messages[0]
    await expect.poll(async () => (await newest())?.state, SOON).toBe('done')
    const number = (await newest())?.number
    expect(await numbers(page)).not.toContain(number)
    gap()
    await expect.poll(async () => (await numbers(page))[0], SOON).toBe(number)
    const shown = await numbers(page)
    expect(new Set(shown).size).toBe(shown.length)
    await go(page, '/chat', 'Chat')
    const input = page.getByRole('textbox', { name: 'Message' })
    await input.fill('heard by both')
    await input.press('Enter')
    await page.getByText('heard: heard by both').first().waitFor(SOON)
    const other = await page.context().newPage()
    await other.goto(page.url())
    await other.getByText('heard: heard by both').first().waitFor(SOON)
    await other.getByRole('textbox', { name: 'Message' }).fill('said elsewhere')
    await other.getByRole('textbox', { name: 'Message' }).press('Enter')
    await other.getByText('heard: said elsewhere').first().waitFor(SOON)
    expect(await page.getByText('heard: said elsewhere').count()).toBe(0)
    gap()
    await page.getByText('heard: said elsewhere').first().waitFor(SOON)
  })

  test('events at a thousand a second leave the page usable, and the log bounded', { timeout: 240_000 }, async () => {
    const { page, source } = await openWithEvents()
    const bare = await page.context().newPage()
    await bare.setContent('<!doctype html><title>bare</title><input aria-label="Find">')
    for (const one of [page, bare]) await one.evaluate(WATCH_DELAYS)
    // Keys for so long; resolves to the delay that all but one in twenty keep.
    const typing = async (one: Page, ms: number): Promise<number> => {
      await one.bringToFront()
      await one.getByRole('textbox', { name: 'Find' }).click()
      await one.evaluate('window.delays.length = 0')
      for (const endsAt = performance.now() + ms; performance.now() < endsAt; ) await one.keyboard.type('e', { delay: 60 })
      const delays = (await one.evaluate<number[]>('window.delays')).toSorted((a, b) => a - b)
      return delays[Math.floor(delays.length * 0.95)] ?? Number.POSITIVE_INFINITY
    }
    const rounds: {
      readonly ownMs: number
      readonly bareMs: number
      readonly cpuMs: number
      readonly busy: number
      readonly perSecond: number
    }[] = []
    const isQuiet = ({ bareMs }: { readonly bareMs: number }) => bareMs <= BARE_TYPING_MS_MAX
    for (let run = 0; run < BURSTS_MAX && rounds.filter(isQuiet).length < BURSTS; run++) {
      const before = await typing(bare, 1500)
      source.start(1000)
      const ownMs = await typing(page, 4000)
      // The trace itself takes time, so the tasks are watched after the keys.
      await browser.startTracing(undefined, { categories: TRACED })
      await page.evaluate("performance.mark('burst')")
      const count = () => page.evaluate<number[]>('[window.arrived, performance.now()]')
      const [first = 0, firstAt = 0] = await count()
      await page.waitForTimeout(3000)
      const [last = 0, lastAt = 0] = await count()
      const tasks = tasksAfterMark(await browser.stopTracing(), 'burst')
      await source.stop()
      const bareMs = Math.max(before, await typing(bare, 1500))
      const cpuMs = Math.max(...tasks.map((task) => task.cpuMs))
      const perSecond = ((last - first) / (lastAt - firstAt)) * 1000
      const busy = tasks.reduce((sum, task) => sum + task.cpuMs, 0) / (lastAt - firstAt)
      rounds.push({ ownMs, bareMs, cpuMs, busy, perSecond })
    }
    for (const { ownMs, bareMs, cpuMs, busy, perSecond } of rounds)
      console.log(
        `${perSecond.toFixed(0)} events/s arrived: typing p95 ${ownMs.toFixed(0)} ms, on a bare page ${bareMs.toFixed(0)} ms; longest task ${cpuMs.toFixed(0)} ms of a processor, of which the page takes ${(busy * 100).toFixed(0)} %`,
      )
    await page.bringToFront()
    await page.getByText('5,000 events').waitFor(SOON)
    expect(await page.locator('.virtual li').count()).toBeLessThan(100)
    await source.close()
    if (!ARE_FIGURES_CHECKED) return
    const quiet = rounds.filter(isQuiet)
    expect(quiet.length, 'undisturbed rounds: the machine is too busy to measure').toBeGreaterThan(0)
    expect(median(quiet.map(({ perSecond }) => perSecond))).toBeGreaterThanOrEqual(950)
    expect(median(quiet.map(({ cpuMs }) => cpuMs))).toBeLessThanOrEqual(100)
    expect(median(quiet.map(({ ownMs }) => ownMs))).toBeLessThanOrEqual(100)
  })

  test('a page in the background draws no events, and shows them all when it is looked at again', async () => {
    const { page, source } = await openWithEvents()
    // A headless browser never hides a page by itself.
    const look = (state: 'hidden' | 'visible') =>
      page.evaluate(`
        Object.defineProperty(document, 'visibilityState', { configurable: true, value: '${state}' })
        document.dispatchEvent(new Event('visibilitychange'))
      `)
    const shown = () => page.locator('.logs-head .quiet').textContent()
    await source.send(10)
    await expect.poll(async () => (await shown())?.startsWith('0'), SOON).toBe(false)
    await look('hidden')
    const before = await shown()
    await source.send(6000)
    await expect.poll(() => page.evaluate<number>('window.arrived'), SOON).toBeGreaterThanOrEqual(6010)
    await page.waitForTimeout(600)
    expect(await shown()).toBe(before)
    await look('visible')
    await expect.poll(shown, SOON).toBe('5,000 events')
    await source.close()
  })

  test('an hour of events leaves at most a mebibyte more in the heap', async () => {
    const { page, source } = await openWithEvents()
    // An event a second for so many seconds, sent within moments.
    const seconds = async (count: number) => {
      for (let sent = 0; sent < count; sent += 100) {
        await source.send(100)
        await new Promise((done) => setTimeout(done, 50))
      }
      await page.waitForTimeout(1500)
    }
    const heap = async (): Promise<number> => {
      await page.evaluate('gc(); gc()')
      await page.waitForTimeout(200)
      await page.evaluate('gc()')
      return await page.evaluate<number>('performance.memory.usedJSHeapSize')
    }
    // The list of events reaches its bound first.
    await seconds(7200)
    const before = await heap()
    await seconds(3600)
    const grown = (await heap()) - before
    console.log(`the heap grew by ${(grown / 1024).toFixed(0)} KiB over 3600 events, from ${(before / 1_048_576).toFixed(1)} MiB`)
    expect(await page.getByText('5,000 events').count()).toBe(1)
    expect(grown).toBeLessThanOrEqual(1_048_576)
    await source.close()
  })

  test('a hundred thousand rows open as quickly as a hundred', { timeout: 240_000 }, async () => {
    await world.gateway.kill('SIGTERM')
    fill(join(world.gateway.dataDir, 'sluice.db'))
    await world.gateway.start()
    const page = await open()
    const startedAt = performance.now()
    await go(page, '/deliveries/inbox', 'Deliveries')
    await expect.poll(async () => (await numbers(page)).length, SOON).toBe(50)
    console.log(`100,000 rows: first page after ${(performance.now() - startedAt).toFixed(0)} ms`)
    const seen = new Set(await numbers(page))
    for (let turn = 2; turn <= 6; turn++) {
      const [first] = await numbers(page)
      await page.getByRole('button', { name: 'Older' }).click()
      await page.getByText(`Page ${turn}`).waitFor()
      await expect.poll(async () => (await numbers(page))[0], SOON).not.toBe(first)
      for (const number of await numbers(page)) {
        expect(seen.has(number), `row ${number} is shown twice`).toBe(false)
        seen.add(number)
      }
    }
    expect(seen.size).toBe(300)
    expect(Math.max(...seen) - Math.min(...seen)).toBe(299)
    await page.getByRole('button', { name: 'Newest' }).click()
    await world.send('the newest of all')
    const { messages } = (await world.gateway.call('GET', '/api/deliveries/inbox?limit=1')) as { messages: { number: number }[] }
    await expect.poll(async () => (await numbers(page))[0], SOON).toBe(messages[0]?.number)
    expect(await page.evaluate('document.querySelectorAll("*").length')).toBeLessThan(3000)
  })
})

/** Keeps the time from each key to the next picture. */
const WATCH_DELAYS = `
  window.delays = []
  const watch = ({ timeStamp }) => requestAnimationFrame(() => setTimeout(() => window.delays.push(performance.now() - timeStamp)))
  document.addEventListener('keydown', watch, true)
`

/** Fills the inbox with finished messages, as months of traffic do. */
function fill(file: string): void {
  const database = new DatabaseSync(file)
  const insert = database.prepare(
    `INSERT INTO inbox (key, channel, account, message_id, sender, session, state, attempts, received_at, ended_at, verdict)
     VALUES (randomblob(16), 'webhook', '', ?, ?, ?, 'done', 1, ?, ?, 'unsigned')`,
  )
  database.exec('BEGIN')
  const nowMs = Date.now()
  for (let row = 0; row < ROWS; row++)
    insert.run(`row-${row}`, `sender ${row % 97}`, `webhook:sender ${row % 97}`, nowMs - row, nowMs - row)
  database.exec('COMMIT')
  database.close()
}
