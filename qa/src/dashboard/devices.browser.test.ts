/** The robot and the boards of the dashboard, and a channel that is linked by QR code: in a build with these features. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'
import { expectHarmless, spoilAnswers } from './hostile.ts'
import {
  buildWith,
  foundChromium,
  launchChromium,
  type PageDaemon,
  signedIn,
  startPageDaemon,
  type Watched,
  whySkipped,
} from './page-daemon.ts'
import { seriousFaults } from './serious-faults.ts'

const SOON = { timeout: 20_000 }
const BUILD = 'devices'

interface Fake {
  readonly sessionPath: string
  readonly webUrl: string
  readonly rootKey: string
  scan(qr: string): void
  close(): Promise<void>
}

interface Audited {
  readonly kind: string
  readonly by: string
  readonly detail: Readonly<Record<string, unknown>>
}

/** Two channels of the platform can have this section. */
const WHATSAPP = 'WhatsApp, as a linked device of a phone (chatapp)'

describe.skipIf('missing' in foundChromium)(`the devices of the dashboard${whySkipped}`, () => {
  let fake: Fake
  let gateway: PageDaemon
  let browser: Browser
  let watched: Watched
  let page: Page

  beforeAll(async () => {
    buildWith('safety,hardware,chatapp-web', BUILD)
    const module = pathToFileURL(join(ROOT, 'packages/channel-chatapp-web/src/testing/fake.ts')).href
    const { startWebFake } = (await import(module)) as { startWebFake(options: object): Promise<Fake> }
    fake = await startWebFake({ isLinked: false })
    gateway = await startPageDaemon(
      `[peripherals]
enabled = true
discover = false
[[peripherals.boards]]
board = "board_a"
transport = "sim"
[channels_config.chatapp]
session_path = ${JSON.stringify(fake.sessionPath)}
web_url = ${JSON.stringify(fake.webUrl)}
web_root_key = ${JSON.stringify(fake.rootKey)}
allowed_numbers = ["*"]
`,
      { profile: BUILD },
    )
    writeFileSync(join(gateway.dataDir, 'robot.toml'), '[drive]\nbackend = "sim"\n')
    await gateway.restart('SIGTERM')
    browser = await launchChromium()
    watched = await signedIn(browser, gateway)
    page = watched.page
  }, 240_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    await fake?.close()
  })

  const go = async (place: string, title: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor({ state: 'attached' })
  }
  const robot = async () =>
    ((await gateway.call('GET', '/api/hardware')) as { robots: { state: string; reason: string | null }[] }).robots[0]

  test('the boards are listed, and the robot with what its sensors see', async () => {
    await go('/hardware', 'Hardware')
    await page.getByRole('table', { name: 'Boards and adapters' }).getByText('board_a0').waitFor(SOON)
    await page.getByText('The robot is simulated: no real robot moves.').waitFor(SOON)
    await expect.poll(async () => (await robot())?.state, SOON).toBe('ready')
    await page.getByText('Free ahead').waitFor(SOON)
  })

  test('the emergency stop asks, survives a kill of the daemon, and only a person ends it', async () => {
    await go('/hardware', 'Hardware')
    await page.getByRole('button', { name: 'Emergency stop' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect((await robot())?.state).toBe('ready')
    await page.getByRole('button', { name: 'Emergency stop' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Stop the robot' }).click()
    await page
      .getByText(/an operator stopped it \(device:/)
      .first()
      .waitFor(SOON)
    await gateway.restart('SIGKILL')
    await expect
      .poll(async () => robot().catch(() => undefined), SOON)
      .toMatchObject({ state: 'stopped', reason: expect.stringContaining('operator') })
    await page.getByText('Disconnected since').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Reset' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Reset' }).click()
    await expect.poll(async () => (await robot())?.state, SOON).toBe('ready')
    const { records } = (await gateway.call('GET', '/api/sops/audit?limit=200')) as { records: Audited[] }
    const actions = records.filter(({ detail }) => detail.device === 'robot').map(({ by, detail }) => [by.split(':')[0], detail.action])
    expect(actions).toEqual([
      ['device', 'emergency stop'],
      ['device', 'reset'],
    ])
  })

  test('a channel is linked by the QR code of its page, and unlinked', async () => {
    await go('/channels/chatapp', WHATSAPP)
    await page.getByRole('button', { name: 'Link by QR code' }).click()
    await page.getByRole('img', { name: 'QR code' }).waitFor(SOON)
    const link = async () =>
      (await gateway.call('GET', '/api/channels/chatapp/link')) as { state: string; qr: { text: string; rows: string[] } | null }
    const { qr } = await link()
    expect(qr?.rows.length).toBeGreaterThan(20)
    fake.scan(qr?.text ?? '')
    await page.getByText(/^Linked to/).waitFor(SOON)
    await expect.poll(async () => (await link()).state, SOON).toBe('linked')
    await page.getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click()
    await expect.poll(async () => (await link()).state, SOON).toBe('unlinked')
  })

  test('axe finds no serious fault, and nothing is wider than a phone', async () => {
    for (const [place, title] of [
      ['/hardware', 'Hardware'],
      ['/channels/chatapp', WHATSAPP],
    ] as const) {
      await page.setViewportSize({ width: 380, height: 720 })
      await go(place, title)
      await expect.poll(() => page.evaluate('document.querySelectorAll(".loading").length'), SOON).toBe(0)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), place).toBe(true)
      expect(await seriousFaults(page), place).toEqual([])
    }
    expect(watched.faults).toEqual([])
  })

  test('what boards, adapters and the robot say about themselves stays text', async () => {
    await spoilAnswers(page, '**/api/hardware')
    await page.reload()
    await go('/hardware', 'Hardware')
    await page.getByRole('table', { name: 'Boards and adapters' }).waitFor(SOON)
    await expectHarmless(page, 'hardware')
    expect(watched.faults).toEqual([])
  })
})
