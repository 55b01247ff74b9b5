import { createSocket } from 'node:dgram'
import { AppError } from '@sluice/sdk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Site, startSite, VECTORS } from '../testing/site.ts'
import { chromiumSetup, createWorld, foundChromium, skipNote, type World } from '../testing/world.ts'

/** How often a test polls for the effect of a page's scripts. */
const TRIES_MAX = 200

const refusal = (error: unknown): string => {
  if (error instanceof AppError && error.code === 'forbidden') return `[refused: ${error.message}]`
  throw error
}

describe.skipIf('missing' in foundChromium)(`the egress of a real browser${skipNote}`, () => {
  let site: Site
  /** A site on a private address, which no page may reach. */
  let inside: Site
  /** A site that pages may reach as `other.test`. Chromium may request its icon at any time. */
  let outside: Site
  let setup: Awaited<ReturnType<typeof chromiumSetup>>
  /** A browser that may load every public host. */
  let open: World
  /** A browser that may load only `site.test`. */
  let narrow: World

  const names = {
    'site.test': ['127.0.0.1'],
    'other.test': ['127.0.0.1'],
    'inside.test': ['127.0.0.1'],
    'mixed.test': ['93.184.215.14', '127.0.0.1'],
  }

  beforeAll(async () => {
    inside = await startSite({ '/': 'inside' })
    outside = await startSite({ '/': 'outside' })
    const link = `<a href="http://site.test@127.0.0.1:${inside.port}/clicked">Inside ${inside.port}</a>`
    site = await startSite({ '/': 'hello', '/link': link })
    setup = await chromiumSetup()
    const shared = { names, exempt: ['site.test', 'other.test'], host: { dataDir: setup.dataDir } }
    open = createWorld({ ...shared, config: { ...setup.config, allowed_domains: ['*'] } })
    narrow = createWorld({ ...shared, config: { ...setup.config, allowed_domains: ['site.test'] } })
    await open.run({ action: 'open', url: `http://site.test:${site.port}/` })
    await narrow.run({ action: 'open', url: `http://site.test:${site.port}/` })
  }, 60_000)
  afterAll(async () => {
    await open?.close()
    await narrow?.close()
    await site?.close()
    await inside?.close()
    await outside?.close()
    await setup?.remove()
  })

  /** Opens a page and returns all results until one reports a refusal, or `until` returns true. */
  const watch = async (world: World, url: string, until = () => false): Promise<string> => {
    let results = await world.run({ action: 'open', url }).catch(refusal)
    for (let tries = 0; tries < TRIES_MAX && !results.includes('[refused: ') && !until(); tries++) {
      results += await world.run({ action: 'wait', ms: 50 })
    }
    return results
  }
  const page = (vector: string, target: string) =>
    `http://site.test:${site.port}/by/${encodeURIComponent(vector)}?to=${encodeURIComponent(target)}`

  test.each([
    'http://127.0.0.1:PORT/',
    'http://2130706433:PORT/',
    'http://0x7f000001:PORT/',
    'http://0x7f.1:PORT/',
    'http://0177.0.0.1:PORT/',
    'http://127.1:PORT/',
    'http://[::1]:PORT/',
    'http://[::ffff:127.0.0.1]:PORT/',
    'http://[::ffff:7f00:1]:PORT/',
    'http://inside.test:PORT/',
    'http://inside.test.:PORT/',
    'http://mixed.test:PORT/',
    'http://site.test@127.0.0.1:PORT/',
    'http://127.0.0.1:PORT\\@site.test/',
    'http://10.0.0.1/',
    'http://169.254.169.254/latest/meta-data/',
    'file:///etc/passwd',
    'FILE:///etc/passwd',
    'data:text/html,<h1>x</h1>',
    'view-source:http://site.test/',
    'chrome://version',
    'javascript:alert(1)',
    'about:blank',
    'ftp://site.test/',
    'blob:http://site.test/x',
  ])('does not open %s', async (url) => {
    await expect(open.run({ action: 'open', url: url.replace('PORT', String(inside.port)) })).rejects.toMatchObject({ code: 'forbidden' })
    expect(inside.connections).toBe(0)
  })

  test('does not follow a redirect to a private address', async () => {
    const target = encodeURIComponent(`http://127.0.0.1:${inside.port}/`)
    await expect(open.run({ action: 'open', url: `http://site.test:${site.port}/redirect?to=${target}` })).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining("'127.0.0.1' is not a public address"),
    })
    expect(inside.connections).toBe(0)
  })

  test.each(Object.keys(VECTORS))('lets %s reach an allowed host but no private one', async (vector) => {
    const before = outside.connections
    await watch(open, page(vector, `http://other.test:${outside.port}/there`), () => outside.connections > before)
    expect(outside.connections).toBeGreaterThan(before)
    expect(await watch(open, page(vector, `http://127.0.0.1:${inside.port}/`))).toContain('is not a public address')
    expect(inside.connections).toBe(0)
  })

  test.each(Object.keys(VECTORS))('lets %s reach only hosts in allowed_domains', async (vector) => {
    expect(await watch(narrow, page(vector, `http://other.test:${inside.port}/`))).toContain("'other.test' is not in allowed_domains")
    expect(inside.connections).toBe(0)
  })

  test.each(['location.assign', 'an image', 'a redirect of an iframe', 'a WebSocket of a worker'])(
    'does not let %s reach a name that resolves to a private address',
    async (vector) => {
      for (const name of ['inside.test', 'mixed.test']) {
        expect(await watch(open, page(vector, `http://${name}:${inside.port}/`))).toContain(`'${name}' is not a public address`)
      }
      expect(inside.connections).toBe(0)
    },
  )

  test.each(['https', 'wss'])('refuses %s before it connects', async (scheme) => {
    const vector = scheme === 'wss' ? 'a WebSocket' : 'fetch'
    expect(await watch(open, page(vector, `https://inside.test:${inside.port}/`))).toContain('is not a public address')
    expect(inside.connections).toBe(0)
  })

  test('blocks service workers', async () => {
    await open.run({ action: 'open', url: `http://site.test:${site.port}/` })
    const registered = page(
      'a script',
      `data:text/javascript,navigator.serviceWorker?.register('/sw.js').then(()=>document.title='on',()=>document.title='off')??(document.title='off')`,
    )
    await open.run({ action: 'open', url: registered })
    await open.run({ action: 'wait', ms: 300 })
    expect(await open.run({ action: 'get_title' })).not.toBe('on')
    expect(site.paths).not.toContain('/sw.js')
  })

  test('sends no datagrams for WebRTC or WebTransport', async () => {
    const socket = createSocket('udp4')
    let datagrams = 0
    socket.on('message', () => {
      datagrams++
    })
    await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
    const { port } = socket.address()
    const code = `
      const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${port}' }, { urls: 'turn:127.0.0.1:${port}', username: 'a', credential: 'b' }] })
      peer.createDataChannel('x'); peer.createOffer().then((offer) => peer.setLocalDescription(offer))
      try { new WebTransport('https://127.0.0.1:${port}/').ready.catch(() => 0) } catch {}`
    await open.run({ action: 'open', url: page('a script', `data:text/javascript,${encodeURIComponent(code)}`) })
    await open.run({ action: 'wait', ms: 1500 })
    socket.close()
    expect(datagrams).toBe(0)
  })

  test('a click on a link to a refused host says so, and the page stays usable', async () => {
    const home = `http://site.test:${site.port}/link`
    expect(await open.run({ action: 'open', url: `${home}` })).toContain('Opened.')
    const clicked = await open.run({ action: 'click', selector: `text=Inside ${inside.port}` })
    expect(clicked).toContain("[refused: '127.0.0.1' is not a public address]")
    expect(await open.run({ action: 'get_text', selector: 'body' })).toContain("Sluice: '127.0.0.1' is not a public address")
    expect(await open.run({ action: 'open', url: home })).toContain('Opened.')
    expect(inside.paths).not.toContain('/clicked')
  })
})
