/**
 * An approval on a phone, from the question to the answer. `SLUICE_SCREENSHOTS=1` writes it as the moving picture of the README, which browsers
 * that know no animated PNG show as its first frame.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startModelServer } from '@sluice/testkit/model-server'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import { ROOT } from '../daemons/bundle.ts'
import { foundChromium, launchChromium, signedIn, startPageDaemon, whySkipped } from './page-daemon.ts'

interface Frame {
  readonly png: Buffer
  readonly ms: number
}
const { movingPicture } = (await import(join(ROOT, 'scripts/apng.mjs'))) as { movingPicture(frames: readonly Frame[]): Buffer }

const PICTURE = join(ROOT, 'docs/images/approval-on-a-phone.png')
const BYTES_MAX = 600_000
const SOON = { timeout: 30_000 }
const QUESTION = 'Please delete the draft of the June report.'
const ANSWER = 'The draft is deleted. The final report is still there.'

/** Draws the page on its own viewport and a ring where the finger is. */
const touch = (page: Page, x: number, y: number) =>
  page.evaluate(
    `{ const ring = document.createElement('div'); ring.id = 'finger'; ring.style.cssText = 'position:fixed;z-index:9999;pointer-events:none;width:36px;height:36px;border-radius:50%;background:#0006;left:${x - 18}px;top:${y - 18}px'; document.body.append(ring) }`,
  )

describe.skipIf('missing' in foundChromium)(`an approval on a phone${whySkipped}`, () => {
  test('a person asks, sees the command, approves it, and reads the answer', { timeout: 240_000 }, async () => {
    const model = await startModelServer({
      apiKey: null,
      answer: ({ body }) => {
        const last = (body as { messages: readonly { role: string }[] }).messages.at(-1)
        return last?.role === 'tool' ? { text: ANSWER } : { toolCalls: [{ name: 'shell', input: { command: 'rm reports/june-draft.md' } }] }
      },
    })
    const gateway = await startPageDaemon(`[provider]
kind = "openai"
base_url = "${model.url}/v1"
model = "test"
[security.sandbox]
enabled = false
[security.policy]
level = "supervised"
allowed_commands = ["rm"]
`)
    const browser = await launchChromium()
    try {
      const draft = join(gateway.dataDir, 'workspace/reports/june-draft.md')
      mkdirSync(join(draft, '..'), { recursive: true })
      writeFileSync(draft, 'A draft.')
      const phone = {
        viewport: { width: 360, height: 640 },
        hasTouch: true,
        isMobile: true,
        bypassCSP: true,
        colorScheme: 'light',
      } as const
      const { page, faults } = await signedIn(browser, gateway, phone)
      const frames: Frame[] = []
      const frame = async (ms: number) => frames.push({ png: await page.screenshot({ animations: 'disabled', caret: 'hide' }), ms })
      await page.evaluate('location.hash = "/chat"')
      const input = page.getByRole('textbox', { name: 'Message' })
      await input.waitFor(SOON)
      for (const button of await page.locator('.examples button').all()) {
        const { x = -1, width = 0 } = (await button.boundingBox()) ?? {}
        expect({ left: x >= 0, right: x + width <= phone.viewport.width }).toEqual({ left: true, right: true })
      }
      await frame(1200)
      for (const words of [2, 5, 8]) {
        await input.fill(QUESTION.split(' ').slice(0, words).join(' '))
        await frame(words === 8 ? 900 : 350)
      }
      await page.getByRole('button', { name: 'Send', exact: true }).tap()
      const approve = page.locator('.question').getByRole('button', { name: 'Approve' })
      await approve.waitFor(SOON)
      await approve.scrollIntoViewIfNeeded()
      expect(await page.locator('.question').textContent()).toContain('rm reports/june-draft.md')
      expect(existsSync(draft)).toBe(true)
      await frame(2600)
      const box = await approve.boundingBox()
      if (!box) throw new Error('The button is not shown')
      await touch(page, box.x + box.width / 2, box.y + box.height / 2)
      await frame(500)
      await page.evaluate("document.querySelector('#finger').remove()")
      await approve.tap()
      await page.getByText(ANSWER, { exact: true }).waitFor(SOON)
      expect(existsSync(draft)).toBe(false)
      await page.getByRole('button', { name: 'Close' }).tap()
      await frame(4000)
      const picture = movingPicture(frames)
      console.log(`the moving picture has ${frames.length} frames and ${(picture.length / 1000).toFixed(0)} kB`)
      expect(picture.length).toBeLessThan(BYTES_MAX)
      if (process.env.SLUICE_SCREENSHOTS === '1') writeFileSync(PICTURE, picture)
      // A browser reads every frame, each with its time. It decodes only for pages of a secure address.
      const shown = await page.context().newPage()
      await shown.goto(gateway.address)
      await shown.setContent(`<img src="data:image/png;base64,${picture.toString('base64')}">`)
      await expect.poll(() => shown.evaluate('(({ complete, naturalWidth }) => complete && naturalWidth)(document.images[0])')).toBe(360)
      expect(
        await shown.evaluate(
          `(async () => { const bytes = Uint8Array.from(atob(document.images[0].src.split(',')[1]), (c) => c.charCodeAt(0));
            const decoder = new ImageDecoder({ data: bytes, type: 'image/png' }); await decoder.tracks.ready; await decoder.completed;
            const durations = []; for (let at = 0; at < decoder.tracks.selectedTrack.frameCount; at++) durations.push((await decoder.decode({ frameIndex: at })).image.duration / 1000);
            return durations })()`,
        ),
      ).toEqual(frames.map(({ ms }) => ms))
      expect(faults).toEqual([])
      await page.context().close()
    } finally {
      await browser.close()
      await gateway.stop()
      await model.close()
    }
  })
})
