/**
 * The notifications of a browser: its worker under the policy of the page, and the place that turns them on. A browser gets a subscription only
 * from the push service of its vendor, so the tests have one that the page is given; the worker gets its messages from the browser itself.
 */
import { createECDH, randomBytes } from 'node:crypto'
import type { Browser, BrowserContext, CDPSession, Worker } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  foundChromium,
  launchChromium,
  type PageDaemon,
  signedIn,
  startPageDaemon,
  type Watched,
  watchedPage,
  whySkipped,
} from './page-daemon.ts'

const SOON = { timeout: 20_000 }
const CONFIG = '[web_push]\nenabled = true\ncontact = "mailto:admin@example.com"\n'

describe.skipIf('missing' in foundChromium)(`the notifications of a browser${whySkipped}`, () => {
  let gateway: PageDaemon
  let browser: Browser
  const opened: BrowserContext[] = []

  beforeAll(async () => {
    gateway = await startPageDaemon(CONFIG)
    browser = await launchChromium()
  }, 120_000)
  afterEach(async () => {
    for (const context of opened.splice(0)) await context.close()
  })
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
  })

  /** A signed-in page at the place, whose browser gives this subscription when it is asked for one. */
  async function open({ endpoint = '', on = gateway } = {}): Promise<Watched> {
    const watched = await signedIn(browser, on)
    opened.push(watched.page.context())
    await watched.page.context().grantPermissions(['notifications'], { origin: on.address })
    const keys = createECDH('prime256v1')
    keys.generateKeys()
    const subscription = { endpoint, keys: { p256dh: keys.getPublicKey('base64url'), auth: randomBytes(16).toString('base64url') } }
    await watched.page.addInitScript(`{
      let current = null
      const given = ${JSON.stringify(subscription)}
      const made = { endpoint: given.endpoint, toJSON: () => given, unsubscribe: async () => { current = null; return true } }
      PushManager.prototype.getSubscription = async () => current
      PushManager.prototype.subscribe = async function (options) {
        window.subscribedWith = options
        if (given.endpoint === '') throw new DOMException('no push service', 'AbortError')
        return (current = made)
      }
    }`)
    await watched.page.goto(`${on.address}/#/browser`)
    await watched.page.reload()
    await watched.page.getByRole('heading', { name: 'This browser', level: 1 }).waitFor()
    return watched
  }

  const turnOn = ({ page }: Watched) => page.getByRole('button', { name: 'Turn on' }).click()

  test('run by one worker, whose address is the only one that the policy of the page lets through', async () => {
    const watched = await open()
    const { page } = watched
    const before = page.context().serviceWorkers().length
    await turnOn(watched)
    await page.getByText('The browser got no subscription from its push service.').waitFor()
    expect([
      before,
      page
        .context()
        .serviceWorkers()
        .map((worker) => worker.url()),
    ]).toEqual([0, [`${gateway.address}/push-worker.js`]])
    expect(await page.evaluate('subscribedWith.userVisibleOnly')).toBe(true)
    const { public_key } = (await gateway.call('GET', '/api/web-push')) as { readonly public_key: string }
    expect(await page.evaluate('subscribedWith.applicationServerKey')).toBe(public_key)
    expect(watched.faults).toEqual([])
    const refused = (script: string) =>
      page.evaluate<string>(`(async () => { try { await (${script}); return 'let through' } catch (error) { return error.name } })()`)
    expect(await refused(`navigator.serviceWorker.register('${gateway.address}/push-worker.js')`)).toBe('TypeError')
    expect(await refused(`trustedTypes.createPolicy('other', { createScriptURL: (url) => url })`)).toBe('TypeError')
    expect(await refused(`trustedTypes.createPolicy('sluice-worker', { createScriptURL: (url) => url })`)).toBe('TypeError')
  })

  test('are turned on, tested and turned off', async () => {
    const endpoint = 'https://localhost:9/push/one'
    const watched = await open({ endpoint })
    const { page } = watched
    await turnOn(watched)
    await page.getByText('Notifications are on in this browser.').waitFor()
    const browsers = async () =>
      ((await gateway.call('GET', '/api/web-push/browsers')) as { readonly browsers: readonly object[] }).browsers
    expect(await browsers()).toMatchObject([{ role: 'operator', service: 'localhost:9' }])
    // The address is one of this machine, which the gateway refuses to call.
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('The notification was not sent:').waitFor()
    await page.getByRole('button', { name: 'Turn off' }).click()
    await page.getByText('Notifications are off in this browser.').waitFor()
    await page.getByRole('button', { name: 'Turn on' }).waitFor()
    expect(await browsers()).toEqual([])
    expect(watched.faults).toEqual([])
  })

  test('end when the browser signs out', async () => {
    const watched = await open({ endpoint: 'https://localhost:9/push/two' })
    await turnOn(watched)
    await watched.page.getByRole('button', { name: 'Turn off' }).waitFor()
    await watched.page.getByRole('button', { name: 'Sign out' }).click()
    await expect
      .poll(async () => ((await gateway.call('GET', '/api/web-push/browsers')) as { browsers: unknown[] }).browsers, SOON)
      .toEqual([])
  })

  test('show what the gateway sent, and lead to its place', async () => {
    const watched = await open()
    const { page } = watched
    await turnOn(watched)
    await page.getByText('The browser got no subscription').waitFor()
    const [worker] = page.context().serviceWorkers()
    if (!worker) throw new Error('no worker')
    const push = await pusher(await page.context().newCDPSession(page), gateway.address)
    await push(JSON.stringify({ title: 'An approval waits', body: 'A call of the tool shell waits.', place: '#/approvals', tag: 'one' }))
    await expect.poll(() => shown(worker), SOON).toEqual([['An approval waits', 'A call of the tool shell waits.', 'one']])
    await press(worker, 'one')
    await page.getByRole('heading', { name: 'Approvals', level: 1 }).waitFor()
    expect(await shown(worker)).toEqual([])
    await push('not JSON')
    await expect.poll(() => shown(worker), SOON).toEqual([['Sluice', 'Something waits for you.', 'sluice']])
    await push(JSON.stringify({ title: 'Elsewhere', place: 'https://elsewhere.example/', tag: 'two' }))
    await expect.poll(() => shown(worker), SOON).toHaveLength(2)
    await press(worker, 'two')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.goto(`${gateway.address}/#/procedure-files`)
    const steps = page.getByLabel('SOP.md')
    await steps.fill('typed for an hour')
    await push(JSON.stringify({ title: 'An approval waits', place: '#/approvals', tag: 'three' }))
    await expect.poll(() => shown(worker), SOON).toHaveLength(2)
    await press(worker, 'three')
    await page.getByText('what was typed here may not be saved').waitFor()
    expect(await steps.inputValue()).toBe('typed for an hour')
    expect(watched.faults).toEqual([])
  })

  test('are offered to clients, too, and not where the gateway has them turned off', async () => {
    const context = await browser.newContext()
    opened.push(context)
    const { page } = await watchedPage(context, gateway.address)
    await page.goto(await gateway.link('client'))
    await page.getByRole('link', { name: 'This browser' }).click()
    await page.getByRole('button', { name: 'Turn on' }).waitFor()
    const off = await startPageDaemon()
    try {
      const watched = await open({ on: off })
      await watched.page.getByText('Notifications are turned off in the configuration').waitFor()
      await watched.page.getByRole('link', { name: 'Turn them on' }).click()
      await watched.page.getByRole('heading', { name: 'Configuration', level: 1 }).waitFor()
      expect(watched.faults).toEqual([])
    } finally {
      await off.stop()
    }
  })
})

const shown = (worker: Worker) =>
  worker.evaluate<[string, string, string][]>(
    `(async () => (await registration.getNotifications()).map(({ title, body, tag }) => [title, body, tag]))()`,
  )

/** Presses a notification. A person who does it lets the worker move the focus, too. */
const press = (worker: Worker, tag: string) =>
  worker.evaluate(`(async () => {
    const [notification] = await registration.getNotifications({ tag: '${tag}' })
    dispatchEvent(new NotificationEvent('notificationclick', { notification }))
  })()`)

/** Returns the function by which the browser gives a message to the worker, as its push service would. */
async function pusher(session: CDPSession, origin: string): Promise<(data: string) => Promise<void>> {
  const registered = new Promise<string>((done) => {
    session.on('ServiceWorker.workerRegistrationUpdated', ({ registrations: [first] }) => first && done(first.registrationId))
  })
  await session.send('ServiceWorker.enable')
  const registrationId = await registered
  return async (data) => {
    await session.send('ServiceWorker.deliverPushMessage', { origin, registrationId, data })
  }
}
