/** The ways into the dashboard, and of a phone into a channel: QR codes that an independent decoder reads, and passkeys. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { sectionOf, startWebFake, type WebFake } from '@sluice/channel-chatapp-web/testing'
import jsQR from 'jsqr'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from '../daemons/bundle.ts'
import { buildWith, foundChromium, launchChromium, type PageDaemon, startPageDaemon, watchedPage, whySkipped } from './page-daemon.ts'

/** The profile `standard` with the parts that these walks need. */
const BUNDLE = 'dashboard-ways'
const SOON = { timeout: 30_000 }

type Decode = (pixels: Uint8ClampedArray, width: number, height: number) => { readonly data: string } | null
// A CommonJS module, whose types do not say so.
const decode = jsQR as unknown as Decode

describe.skipIf('missing' in foundChromium)(`the ways into the dashboard${whySkipped}`, () => {
  let fake: WebFake
  let gateway: PageDaemon
  let browser: Browser

  beforeAll(async () => {
    buildWith('webauthn,chatapp-web', BUNDLE)
    fake = await startWebFake({ isLinked: false })
    const port = await freePort()
    const section = Object.entries(sectionOf(fake)).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
    const config = `[security.webauthn]
enabled = true
rp_id = "localhost"
rp_origin = "http://localhost:${port}"
[channels_config.chatapp_web]
${section.join('\n')}
`
    gateway = await startPageDaemon(config, { profile: BUNDLE, port })
    browser = await launchChromium()
  }, 240_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
    await fake?.close()
  })

  const open = async (): Promise<Page> => (await watchedPage(await browser.newContext(), gateway.address)).page
  const overview = (page: Page) => page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor(SOON)

  test('the QR code of the terminal has the link, which signs in once, also where the page is open already', async () => {
    const { stdout } = await run(BUNDLE, ['dashboard', '--qr', '--data-dir', gateway.dataDir])
    const [link = '', ...lines] = stdout.trimEnd().split('\n')
    const read = decodeTerminal(lines)
    expect(read).toBe(link)
    const page = await open()
    await page.goto(gateway.address)
    await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor()
    await page.goto(read ?? 'about:blank')
    await overview(page)
    expect(page.url()).toBe(`${gateway.address}/#/`)
    // A page that is signed in redeems a further link, and stays where it can be used.
    await page.goto(await gateway.link())
    await overview(page)
    await page.context().close()
  })

  test('a passkey signs in on the page, until it is removed from its card', async () => {
    const page = await open()
    const session = await page.context().newCDPSession(page)
    await session.send('WebAuthn.enable')
    const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true } as const
    await session.send('WebAuthn.addVirtualAuthenticator', {
      options: { ...options, isUserVerified: true, automaticPresenceSimulation: true },
    })
    await page.goto(`${gateway.address}/passkey`)
    await page.click('summary')
    await page.fill('#bearer', gateway.bearer)
    await page.fill('#user', 'ada')
    await page.fill('#label', 'key of Ada')
    await page.click('#register')
    await page.getByText('Registered: key of Ada').waitFor(SOON)
    await page.goto(gateway.address)
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click(SOON)
    await overview(page)
    const { devices } = (await gateway.call('GET', '/api/devices')) as { devices: { name: string }[] }
    expect(devices.map(({ name }) => name).filter((name) => name.includes('passkey key of Ada'))).toHaveLength(1)
    await page.reload()
    await overview(page)
    await page.evaluate("location.hash = '/devices'")
    const passkeys = page.getByRole('table', { name: 'Passkeys' })
    const own = passkeys.getByRole('row').filter({ hasText: 'key of Ada' })
    await own.getByText('operator', { exact: true }).waitFor(SOON)
    await own.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(await own.count()).toBe(1)
    await own.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('No passkey is registered.').waitFor(SOON)
    expect(await gateway.call('GET', '/api/webauthn/credentials?user_id=ada')).toMatchObject({ credentials: [] })
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click(SOON)
    await page.getByRole('alert').waitFor(SOON)
    expect(await page.getByRole('heading', { name: 'Sign in to Sluice' }).count()).toBe(1)
    await page.context().close()
  })

  test('a channel is linked by the QR code on the page, which a phone scans', async () => {
    const page = await open()
    await page.goto(await gateway.link())
    await overview(page)
    const { channels } = (await gateway.call('GET', '/api/channels')) as { channels: { channel: string }[] }
    const channel = channels.find((one) => one.channel.startsWith('chatapp'))?.channel
    await page.evaluate(`location.hash = '/channels/${channel}'`)
    await page.getByRole('button', { name: 'Link by QR code' }).click(SOON)
    const code = page.locator('main svg[role="img"]')
    await code.waitFor(SOON)
    let text: string | undefined
    await expect
      .poll(async () => {
        text = await decodePicture(page, code)
        return text
      }, SOON)
      .toBeDefined()
    fake.scan(text ?? '')
    await page.getByText('Linked to').waitFor(SOON)
    expect(await code.count()).toBe(0)
    await page.context().close()
  })
})

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
}

/** The pixels of a module, and the modules of the margin that a decoder needs. */
const SCALE = 4
const MARGIN = 4

/** Reads a QR code of half blocks, in which each line has two rows of modules. A terminal is dark: drawn modules are light. */
function decodeTerminal(lines: readonly string[]): string | undefined {
  const rows = lines.flatMap((line) => {
    const characters = Array.from(line)
    return [characters.map((one) => '▀█'.includes(one)), characters.map((one) => '▄█'.includes(one))]
  })
  const width = Math.max(...rows.map((row) => row.length)) + MARGIN * 2
  const height = rows.length + MARGIN * 2
  const pixels = new Uint8ClampedArray(width * height * SCALE * SCALE * 4)
  for (let y = 0; y < height * SCALE; y++)
    for (let x = 0; x < width * SCALE; x++) {
      const isDrawn = rows[Math.floor(y / SCALE) - MARGIN]?.[Math.floor(x / SCALE) - MARGIN] ?? true
      pixels.set(isDrawn ? [255, 255, 255, 255] : [0, 0, 0, 255], (y * width * SCALE + x) * 4)
    }
  return decode(pixels, width * SCALE, height * SCALE)?.data
}

/** Reads the QR code in a picture of the page. */
async function decodePicture(page: Page, code: Locator): Promise<string | undefined> {
  const png = await code.screenshot()
  const blank = await page.context().newPage()
  const { width, height, data } = await blank.evaluate<{ width: number; height: number; data: number[] }>(`(async () => {
    const bytes = Uint8Array.from(atob(${JSON.stringify(png.toString('base64'))}), (character) => character.charCodeAt(0))
    const picture = await createImageBitmap(new Blob([bytes], { type: 'image/png' }))
    const { width, height } = picture
    const context = new OffscreenCanvas(width, height).getContext('2d')
    context.drawImage(picture, 0, 0)
    return { width, height, data: [...context.getImageData(0, 0, width, height).data] }
  })()`)
  await blank.close()
  return decode(Uint8ClampedArray.from(data), width, height)?.data
}
