/** Attacks on the dashboard by other pages of the same browser, by other names of its address, and by the content of requests. */
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { foundChromium, launchChromium, type PageDaemon, signedIn, startPageDaemon, watchedPage, whySkipped } from './page-daemon.ts'

const EVIL = 'evil.example'

describe.skipIf('missing' in foundChromium)(`attacks on the dashboard${whySkipped}`, () => {
  let gateway: PageDaemon
  let open: PageDaemon
  let browser: Browser
  let attacker: Server
  let foreign: string

  beforeAll(async () => {
    gateway = await startPageDaemon()
    open = await startPageDaemon('[gateway]\nrequire_pairing = false\n')
    // A name of the attacker leads to this machine, as after DNS rebinding.
    browser = await launchChromium([`--host-resolver-rules=MAP ${EVIL} 127.0.0.1`])
    attacker = createServer((request, answer) => {
      const name = new URL(request.url ?? '/', 'http://x').searchParams.get('cookie')
      answer
        .writeHead(200, { 'content-type': 'text/html', ...(name && { 'set-cookie': `${name}; Path=/` }) })
        .end('<!doctype html><title>evil</title>')
    })
    await new Promise<void>((done) => attacker.listen(0, '127.0.0.1', done))
    foreign = `http://localhost:${(attacker.address() as AddressInfo).port}/`
  }, 120_000)
  afterAll(async () => {
    await browser?.close()
    attacker?.close()
    attacker?.closeAllConnections()
    await gateway?.stop()
    await open?.stop()
  })

  const devices = async (): Promise<string[]> => {
    const { devices } = (await gateway.call('GET', '/api/devices')) as { devices: { id: string; name: string; paired_at: string }[] }
    return devices.toSorted((one, other) => one.paired_at.localeCompare(other.paired_at)).map(({ id }) => id)
  }
  const evil = async (page: Page): Promise<Page> => {
    const other = await page.context().newPage()
    await other.goto(foreign)
    return other
  }

  test('a page on another port of this machine reads nothing, changes nothing, and receives nothing', async () => {
    const { page } = await signedIn(browser, gateway)
    const before = await devices()
    const code = (await gateway.link()).split('#sign-in=')[1] ?? ''
    const found = await (await evil(page)).evaluate<Record<string, string>>(`(async () => {
      const at = ${JSON.stringify(gateway.address)}
      const result = {}
      const tell = (name, work) => work().then((value) => { result[name] = String(value) }, (error) => { result[name] = 'refused: ' + error.name })
      await tell('read', async () => (await fetch(at + '/api/devices', { credentials: 'include' })).text())
      await tell('blind read', async () => (await fetch(at + '/api/devices', { credentials: 'include', mode: 'no-cors' })).type)
      await tell('change', async () => (await fetch(at + '/api/pairing/initiate', { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json', 'x-sluice-dashboard': '1' }, body: '{}' })).status)
      await tell('simple change', async () => (await fetch(at + '/api/pairing/initiate', { method: 'POST', credentials: 'include', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: '{}' })).type)
      await tell('sign-in', async () => (await fetch(at + '/api/dashboard/sign-in', { method: 'POST', credentials: 'include', mode: 'no-cors', headers: { 'content-type': 'text/plain' }, body: JSON.stringify({ code: ${JSON.stringify(code)} }) })).type)
      await tell('socket', () => new Promise((done) => {
        const socket = new WebSocket(at.replace('http', 'ws') + '/ws/events', ['sluice.v1'])
        socket.onopen = () => done('open')
        socket.onclose = ({ code }) => done('closed ' + code)
      }))
      await tell('chat', () => new Promise((done) => {
        const socket = new WebSocket(at.replace('http', 'ws') + '/ws/chat', ['sluice.v1'])
        socket.onopen = () => done('open')
        socket.onclose = ({ code }) => done('closed ' + code)
      }))
      await tell('events', () => new Promise((done) => {
        const source = new EventSource(at + '/api/events', { withCredentials: true })
        source.onopen = () => done('open')
        source.onerror = () => done('closed')
      }))
      await tell('frame', () => new Promise((done) => {
        const frame = document.createElement('iframe')
        frame.src = at
        frame.onload = () => { try { done(frame.contentDocument === null ? 'opaque ' + frame.contentWindow.length : 'readable') } catch (error) { done('opaque') } }
        document.body.append(frame)
      }))
      await tell('script', () => new Promise((done) => {
        const script = document.createElement('script')
        script.src = at + '/api/devices'
        script.onload = () => done('loaded')
        script.onerror = () => done('closed')
        document.body.append(script)
      }))
      await tell('window', async () => {
        const opened = window.open(at)
        if (!opened) return 'blocked'
        await new Promise((done) => setTimeout(done, 1500))
        try { return opened.closed ? 'severed' : opened.document.title } catch (error) { return 'refused: ' + error.name }
      })
      return result
    })()`)
    expect(found).toMatchObject({
      read: 'refused: TypeError',
      change: 'refused: TypeError',
      socket: 'closed 1006',
      chat: 'closed 1006',
      events: 'closed',
      script: 'closed',
    })
    expect(found.frame).toMatch(/^opaque/)
    expect(found.window).toMatch(/^(?:severed|refused|blocked)/)
    expect(await devices()).toEqual(before)
    // The code was not used up by the page that was refused.
    const person = await watchedPage(await browser.newContext(), gateway.address)
    await person.page.goto(`${gateway.address}/#sign-in=${code}`)
    await person.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await person.page.context().close()
    await page.context().close()
  })

  test('the page is not drawn in a frame', async () => {
    const { page } = await signedIn(browser, gateway)
    const other = await evil(page)
    await other.setContent(`<iframe src="${gateway.address}/" style="width:600px;height:400px"></iframe>`)
    await other.waitForTimeout(1000)
    const [, frame] = other.frames()
    expect(frame?.url()).toMatch(/^chrome-error:/)
    expect(await frame?.getByText('Sluice').count()).toBe(0)
    await page.context().close()
  })

  test('a cookie that a page on another port plants neither signs in nor survives signing in', async () => {
    const { page } = await signedIn(browser, gateway)
    const { port } = new URL(gateway.address)
    const stranger = await browser.newContext()
    const other = await stranger.newPage()
    await other.goto(`${foreign}?cookie=${encodeURIComponent(`sluice_session_${port}=planted`)}`)
    await other.goto(`${foreign}?cookie=${encodeURIComponent(`sluice_role_${port}=operator`)}`)
    await other.goto(gateway.address)
    await other.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor()
    await other.goto(await gateway.link())
    await other.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    const kept = (await stranger.cookies()).filter(({ name }) => name === `sluice_session_${port}`)
    expect(kept).toHaveLength(1)
    expect(kept[0]).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(kept[0]?.value).not.toBe('planted')
    await stranger.close()
    await page.context().close()
  })

  test('a name that was rebound to this machine gets no data, with and without pairing', async () => {
    for (const daemon of [gateway, open]) {
      const { port } = new URL(daemon.address)
      const page = await (await browser.newContext()).newPage()
      await page.goto(`http://${EVIL}:${port}/`)
      const statuses = await page.evaluate<number[]>(`Promise.all([
        fetch('/api/status').then(({ status }) => status),
        fetch('/api/devices').then(({ status }) => status),
        fetch('/api/pairing/initiate', { method: 'POST', headers: { 'x-sluice-dashboard': '1', 'content-type': 'application/json' }, body: '{}' }).then(({ status }) => status),
      ])`)
      for (const status of statuses) expect([401, 403]).toContain(status)
      const socket = await page.evaluate<string>(`new Promise((done) => {
        const socket = new WebSocket('ws://${EVIL}:${port}/ws/events', ['sluice.v1'])
        socket.onopen = () => done('open')
        socket.onclose = () => done('closed')
      })`)
      expect(socket).toBe('closed')
      await page.context().close()
    }
  })

  test('no path leads out of the folder of the page', async () => {
    const paths = [
      '/assets/../config.toml',
      '/assets/../../config.toml',
      '/../config.toml',
      '/assets/%2e%2e/%2e%2e/config.toml',
      '/assets/..%2f..%2fconfig.toml',
      '/assets/..%5c..%5cconfig.toml',
      '/assets//etc/passwd',
      '//etc/passwd',
      '/assets/%00',
      '/assets/index.html%00.js',
      '/assets/.%2e/menu.html',
      '/menu.html',
      '/index.html',
      '/sluice.mjs',
      '/dashboard/index.html',
    ]
    for (const path of paths) {
      const answer = await raw(gateway, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
      expect(answer.split('\r\n')[0], path).toMatch(/^HTTP\/1\.1 (?:400|401|403|404) /)
      expect(answer).not.toMatch(/root:|\[provider\]|require_pairing/)
    }
  })

  test('no header of a request gets into an answer', async () => {
    const { port } = new URL(gateway.address)
    const lines = [
      `Host: localhost:${port}\r\nX-Forwarded-Host: evil.example`,
      `Host: localhost:${port}\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Prefix: /evil`,
      `Host: localhost:${port}\r\nX-Request-Id: evil%0d%0aSet-Cookie: evil=1`,
      `Host: evil.example\r\nX-Evil: 1`,
      `Host: localhost:${port}\r\nOrigin: http://evil.example`,
      `Host: localhost:${port}\r\nCookie: sluice_role_${port}=operator; evil=1`,
    ]
    for (const line of lines) {
      const answer = await raw(gateway, `GET / HTTP/1.1\r\n${line}\r\nConnection: close\r\n\r\n`)
      const head = answer.split('\r\n\r\n')[0] ?? ''
      expect(head).toMatch(/^HTTP\/1\.1 200 /)
      expect(head.toLowerCase()).not.toContain('evil')
      expect(head.toLowerCase()).not.toContain('set-cookie')
      expect(head.toLowerCase()).not.toContain('access-control-allow')
    }
    const broken = await raw(gateway, `GET / HTTP/1.1\r\nHost: localhost:${port}\r\nX: a\rSet-Cookie: evil=1\r\nConnection: close\r\n\r\n`)
    expect(broken.split('\r\n')[0]).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('a session that is revoked while its page is open loses its streams and its data within a second', async () => {
    const { page } = await signedIn(browser, gateway)
    await page.locator('.side .live').getByText('Live', { exact: true }).waitFor()
    await page.evaluate(`
      window.ended = new Promise((done) => {
        const socket = new WebSocket(location.origin.replace('http', 'ws') + '/ws/events', ['sluice.v1'])
        socket.onclose = ({ code }) => done([code, performance.timeOrigin + performance.now()])
        window.opened = new Promise((open) => { socket.onopen = open })
      })
      0
    `)
    await page.evaluate('window.opened.then(() => true)')
    const last = (await devices()).at(-1)
    const revokedAt = Date.now()
    await gateway.call('DELETE', `/api/devices/${last}`)
    const [code, at] = await page.evaluate<[number, number]>('window.ended')
    expect(code).toBe(4401)
    console.log(`a revoked session lost its stream after ${(at - revokedAt).toFixed(0)} ms`)
    expect(at - revokedAt).toBeLessThan(1000)
    await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor()
    expect(await page.evaluate('fetch("api/status").then(({ status }) => status)')).toBe(401)
    await page.context().close()
  })
})

/** Sends these bytes, which no HTTP client would send, and returns the answer. */
const raw = (gateway: PageDaemon, request: string): Promise<string> =>
  new Promise((done, fail) => {
    let text = ''
    const socket = connect(Number(new URL(gateway.address).port), '127.0.0.1', () => socket.write(request))
    socket.setEncoding('latin1').on('data', (piece: string) => {
      text += piece
    })
    socket.on('error', fail).on('close', () => done(text))
  })
