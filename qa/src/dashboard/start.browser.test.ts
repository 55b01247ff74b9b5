/** The first minute: a daemon that a person starts at a terminal, and the page that its link opens. */
import { spawn } from 'node:child_process'
import { stripVTControlCharacters } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { bundle, environment, scratch } from '../daemons/bundle.ts'
import { foundChromium, launchChromium, PROFILE, watchedPage, whySkipped } from './page-daemon.ts'

describe.skipIf('missing' in foundChromium)(`the first start${whySkipped}`, () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await launchChromium()
  }, 60_000)
  afterAll(() => browser?.close())

  test('a terminal shows the link first, and the link opens a page that offers to set up a provider', async () => {
    const { dir, dispose } = scratch()
    const command = `exec '${process.execPath}' '${bundle(PROFILE)}' daemon --data-dir '${dir}' --port 0`
    // `script` of util-linux gives the daemon a terminal.
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'], env: environment() })
    let shown = ''
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text
    })
    const ended = new Promise((done) => terminal.on('close', done))
    const lines = () => stripVTControlCharacters(shown).split(/\r?\n/)
    await expect.poll(() => lines().some((line) => line.includes('listening on')), { timeout: 60_000 }).toBe(true)
    const [title, link = '', address] = lines()
    expect(title).toMatch(/^open the dashboard/)
    expect(link.trim()).toMatch(/^http:\/\/localhost:\d+\/#sign-in=[\w-]{43}$/)
    expect(address).toMatch(/^sluice .* listening on/)
    const { page, faults } = await watchedPage(await browser.newContext(), new URL(link.trim()).origin)
    await page.goto(link.trim())
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.getByRole('link', { name: 'Set up a provider' }).click()
    await page.getByRole('heading', { name: 'Set up a provider', level: 1 }).waitFor()
    expect(faults).toEqual([])
    await page.context().close()
    terminal.stdin.write('\u0003')
    await ended
    dispose()
  })
})
