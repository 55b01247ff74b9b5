import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addAuthenticator, foundChromium, launchChromium } from './testing/chromium.ts'
import { type PasskeyDaemon, startPasskeys } from './testing/daemon.ts'

const why = 'missing' in foundChromium ? ` (skipped: ${foundChromium.missing})` : ''

/** A client library that other programs use in browsers. It takes `public_key` as it is and returns the body for `finish`. */
const LIBRARY = readFileSync(
  join(dirname(createRequire(import.meta.url).resolve('@simplewebauthn/browser')), '../dist/bundle/index.umd.min.js'),
  'utf8',
)

describe.skipIf('missing' in foundChromium)(`passkeys in a real browser${why}`, () => {
  let gateway: PasskeyDaemon
  let browser: Browser

  beforeAll(async () => {
    gateway = await startPasskeys()
    browser = await launchChromium()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await gateway?.stop()
  })

  const open = async (address = gateway.origin): Promise<Page> => {
    const page = await (await browser.newContext()).newPage()
    await page.goto(`${address}/passkey`)
    return page
  }
  const status = (page: Page) => page.textContent('#status')
  const click = async (page: Page, button: string) => {
    await page.click(button)
    await page.waitForSelector(`${button}:enabled`)
    return status(page)
  }
  const register = async (page: Page, user: string, token?: string) => {
    await page.click('summary')
    await page.fill('#bearer', token ?? (await gateway.pair()))
    await page.fill('#user', user)
    await page.fill('#label', `key of ${user}`)
    return click(page, '#register')
  }
  const statusOf = async (path: string, token: string) =>
    (await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${token}` } })).status

  test('registers a passkey on the page and signs in for a valid token', async () => {
    const page = await open()
    const failures: string[] = []
    page.on('console', (message) => failures.push(message.text()))
    await addAuthenticator(page)
    expect(await register(page, 'alice')).toBe('Registered: key of alice')
    expect(await click(page, '#sign-in')).toBe('Signed in as alice')
    const token = await page.inputValue('#token')
    expect(token).toMatch(/^sluice_[0-9a-f]{64}$/)
    expect(await statusOf('/api/status', token)).toBe(200)
    expect(await statusOf('/api/status', `${token}0`)).toBe(401)
    const devices = await fetch(`${gateway.url}/api/devices`, { headers: { authorization: `Bearer ${token}` } })
    expect(await devices.text()).toContain('passkey key of alice')
    expect(failures).toEqual([])
  })

  test('disables a passkey whose counter decreased', async () => {
    const page = await open()
    const authenticator = await addAuthenticator(page)
    const token = await gateway.pair()
    await register(page, 'bob', token)
    expect(await click(page, '#sign-in')).toBe('Signed in as bob')
    const [credential] = await authenticator.passkeys()
    if (!credential) throw new Error('The authenticator has no passkey')
    await authenticator.replacePasskeys(credential, 0)
    expect(await click(page, '#sign-in')).toBe('The passkey was not accepted')
    await authenticator.replacePasskeys(credential, credential.signCount + 5)
    expect(await click(page, '#sign-in')).toBe('The passkey was not accepted')
    const headers = { authorization: `Bearer ${token}` }
    const { credentials } = (await (await fetch(`${gateway.url}/api/webauthn/credentials?user_id=bob`, { headers })).json()) as never
    expect(credentials).toMatchObject([{ label: 'key of bob', disabled: true }])
  })

  test('refuses a user whom the authenticator does not verify', async () => {
    const page = await open()
    const authenticator = await addAuthenticator(page)
    await authenticator.setVerified(false)
    expect(await register(page, 'carol')).toMatch(/not allowed|timed out/)
    await authenticator.setVerified(true)
    expect(await click(page, '#register')).toBe('Registered: key of carol')
    await authenticator.setVerified(false)
    expect(await click(page, '#sign-in')).toMatch(/not allowed|timed out/)
    expect(await page.isVisible('#token')).toBe(false)
  })

  test('refuses a passkey that was deleted from the gateway', async () => {
    const page = await open()
    await addAuthenticator(page)
    const token = await gateway.pair()
    await register(page, 'dave', token)
    const headers = { authorization: `Bearer ${token}` }
    const list = await fetch(`${gateway.url}/api/webauthn/credentials?user_id=dave`, { headers })
    const { credentials } = (await list.json()) as { credentials: { credential_id: string }[] }
    await fetch(`${gateway.url}/api/webauthn/credentials/${credentials[0]?.credential_id}?user_id=dave`, { method: 'DELETE', headers })
    expect(await click(page, '#sign-in')).toBe('The passkey was not accepted')
  })

  test('works with a client library', async () => {
    const page = await open()
    await addAuthenticator(page)
    await page.evaluate(LIBRARY)
    const token = await gateway.pair()
    const signedIn = await page.evaluate(async (bearer) => {
      const { startRegistration, startAuthentication } = (globalThis as never as { SimpleWebAuthnBrowser: Library }).SimpleWebAuthnBrowser
      const post = async (path: string, body: object) => {
        const headers = { 'content-type': 'application/json', authorization: `Bearer ${bearer}` }
        const response = await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })
        return (await response.json()) as Record<string, unknown>
      }
      const created = await post('/api/webauthn/register/start', { user_id: 'erin', user_name: 'Erin' })
      const registered = await post('/api/webauthn/register/finish', await startRegistration({ optionsJSON: created.public_key }))
      const requested = await post('/api/webauthn/auth/start', { user_id: 'erin' })
      return [registered, await post('/api/webauthn/auth/finish', await startAuthentication({ optionsJSON: requested.public_key }))]
    }, token)
    expect(signedIn).toMatchObject([{ label: 'Hardware Key' }, { status: 'authenticated', user_id: 'erin', token: expect.any(String) }])
  })

  test('shows the right address when the page is opened at another origin', async () => {
    expect(await status(await open(gateway.url))).toBe(`Passkeys work at ${gateway.origin} only: open this page there.`)
  })
})

interface Library {
  startRegistration(options: { readonly optionsJSON: unknown }): Promise<object>
  startAuthentication(options: { readonly optionsJSON: unknown }): Promise<object>
}
