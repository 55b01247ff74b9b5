import { join } from 'node:path'
import { toolContext } from '@sluice/testkit/tool'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EgressProxy } from '../egress/egress-proxy.ts'
import { type Site, startSite } from '../testing/site.ts'
import { chromiumSetup, createWorld, foundChromium, skipNote, type World } from '../testing/world.ts'
import { createUrlGuard } from '../url-guard.ts'
import { ClientContext } from './client-context.ts'
import { launchChromium } from './launch-chromium.ts'

/** A browser on a busy machine takes seconds to report an event. */
const TRIES_MAX = 200

const FORM = `
  <h1>Hello</h1><p id=p>A <b>bold</b> word</p><p id=gone hidden>x</p>
  <div><div><button onclick="document.title = 'clicked'">Go</button></div></div>
  <label>Name <input id=name placeholder="your name" data-testid=name></label>
  <label>Agree <input type=checkbox></label>
  <a href="/second">On</a> <a href="/second" target=_blank>Apart</a> <a href="/download">File</a>
  <script>
    setTimeout(() => document.body.append('late news'), 300)
    document.getElementById('name').onkeydown = ({ key }) => { if (key === 'Enter') document.title = 'entered ' + event.target.value }
  </script>`

describe.skipIf('missing' in foundChromium)(`the backend native with a real browser${skipNote}`, () => {
  let site: Site
  let world: World
  let setup: Awaited<ReturnType<typeof chromiumSetup>>
  let home: string

  beforeAll(async () => {
    const pages = { '/': FORM, '/second': 'the second page', '/alert': "<script>alert('boo'); document.title = 'after'</script>" }
    site = await startSite({
      ...pages,
      '/spin': "<button onclick='for (;;);'>Spin</button>",
      '/endless': "<script>document.cookie = 'kept=1'; for (;;);</script>",
      '/slow': '<script src="/never"></script>',
      '/cookie': '<script>document.title = document.cookie</script>',
    })
    setup = await chromiumSetup()
    world = createWorld({
      config: { ...setup.config, allowed_domains: ['*'] },
      names: { 'site.test': ['127.0.0.1'] },
      exempt: ['site.test'],
      host: { dataDir: setup.dataDir },
    })
    home = `http://site.test:${site.port}`
    await world.run({ action: 'open', url: home })
  }, 60_000)
  afterAll(async () => {
    await world?.close()
    await site?.close()
    await setup?.remove()
  })

  const at = async (path: string, client?: string) =>
    world.run({ action: 'open', url: home + path }, client === undefined ? {} : { client })
  const title = () => world.run({ action: 'get_title' })
  /** Performs an action, and adds the notes of later ones until `note` is among them: a browser reports some events after the action has ended. */
  const noted = async (action: Parameters<World['run']>[0], note: string): Promise<string> => {
    let results = await world.run(action)
    for (let tries = 0; tries < TRIES_MAX && !results.includes(note); tries++) results += await world.run({ action: 'wait', ms: 50 })
    return results
  }

  test('opens and reads a page', async () => {
    expect(await at('/')).toBe(`Opened.\nPage: /\nURL: ${home}/`)
    expect(await world.run({ action: 'get_url' })).toBe(`${home}/`)
    expect(await world.run({ action: 'get_text', selector: '#p' })).toBe('A bold word')
    expect(await world.run({ action: 'is_visible', selector: '#p' })).toBe('true')
    expect(await world.run({ action: 'is_visible', selector: '#gone' })).toBe('false')
    expect(await at('/nowhere')).toContain('HTTP 404')
  })

  test('a snapshot lists interactive elements, and its refs work', async () => {
    await at('/')
    const shown = await world.run({ action: 'snapshot' })
    expect(shown).toMatch(/^- button "Go" \[@(?:f\d+)?e\d+\]$/m)
    expect(shown).toMatch(/^- link "On" \[@(?:f\d+)?e\d+\].* -> \/second$/m)
    expect(shown).not.toContain('heading')
    const whole = await world.run({ action: 'snapshot', interactive_only: false })
    expect(whole).toMatch(/- heading "Hello"/)
    const ref = /button "Go" \[(@\w+)\]/.exec(shown)?.[1]
    expect(await world.run({ action: 'click', selector: ref })).toContain('Page: clicked')
    await expect(world.run({ action: 'hover', selector: '@e999' })).rejects.toMatchObject({ code: 'not_found' })
  })

  test('fills a field, types into it and presses a key', async () => {
    await at('/')
    await world.run({ action: 'fill', selector: '#name', value: 'Ada' })
    await world.run({ action: 'type', selector: '#name', text: ' L' })
    expect(await world.run({ action: 'press', key: 'Enter' })).toMatch(/Page: entered (Ada L| LAda)/)
    await expect(world.run({ action: 'press', key: 'Nokey' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('finds elements by role, text, label, placeholder and test id', async () => {
    await at('/')
    await world.run({ action: 'find', by: 'placeholder', value: 'your name', find_action: 'fill', fill_value: 'Bo' })
    await world.run({ action: 'find', by: 'label', value: 'Agree', find_action: 'check' })
    await world.run({ action: 'find', by: 'testid', value: 'name', find_action: 'hover' })
    expect(await world.run({ action: 'find', by: 'role', value: 'heading', find_action: 'text' })).toBe('Hello')
    expect(await world.run({ action: 'find', by: 'text', value: 'Go', find_action: 'click' })).toContain('Page: clicked')
  })

  test('waits for a text, an element or a time, with a limit', async () => {
    await at('/')
    expect(await world.run({ action: 'wait', text: 'late news' })).toBe("'late news' is there.")
    expect(await world.run({ action: 'wait', selector: '#p' })).toBe('#p is there.')
    expect(await world.run({ action: 'wait' })).toBe('Waited for 250 ms.')
    await expect(world.run({ action: 'wait', text: 'never', ms: 100 })).rejects.toMatchObject({ code: 'upstream_timeout' })
    expect(await world.run({ action: 'scroll', direction: 'down' })).toBe('Scrolled down by 600 pixels.')
  })

  test('stores a screenshot only inside the workspace', async () => {
    await at('/')
    expect(await world.run({ action: 'screenshot', path: 'shots/a.png', full_page: true })).toBe('The screenshot is in shots/a.png.')
    const png = await world.host.by.workspace.read('shots/a.png', { bytesMax: 10_000_000 })
    expect(Buffer.from(png.subarray(1, 4)).toString()).toBe('PNG')
    expect(await world.run({ action: 'screenshot' })).toMatch(/screenshots\/[0-9a-f-]+\.png/)
    await expect(world.run({ action: 'screenshot', path: '../a.png' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(world.run({ action: 'screenshot', path: 'notes.txt' })).rejects.toMatchObject({ code: 'invalid_request' })
  })

  test('follows a link, and makes a new page the current one until it is closed', async () => {
    await at('/')
    expect(await world.run({ action: 'click', selector: 'text=On' })).toContain(`URL: ${home}/second`)
    await at('/')
    expect(await noted({ action: 'click', selector: 'text=Apart' }, 'a new page opened')).toContain('a new page opened')
    expect(await world.run({ action: 'get_url' })).toBe(`${home}/second`)
    expect(await world.run({ action: 'close' })).toContain(`URL: ${home}/`)
  })

  test('reports dismissed dialogs and refused downloads', async () => {
    expect(await at('/alert')).toContain('a dialog (alert) was dismissed: boo')
    await expect.poll(title).toBe('after')
    await at('/')
    expect(await noted({ action: 'click', selector: 'text=File' }, 'a download was refused')).toContain('a download was refused')
  })

  test('isolates clients from each other', async () => {
    await at('/cookie')
    await world.run({ action: 'close' })
    await at('/', 'ann')
    await expect(world.run({ action: 'get_url' }, { client: 'ben' })).rejects.toMatchObject({ code: 'conflict' })
    await at('/second', 'ben')
    expect(await world.run({ action: 'get_url' }, { client: 'ann' })).toBe(`${home}/`)
    expect(await world.run({ action: 'close' }, { client: 'ann' })).toBe('Closed.')
    expect(await world.run({ action: 'close' }, { client: 'ann' })).toBe('Closed.')
    expect(await world.run({ action: 'get_url' }, { client: 'ben' })).toBe(`${home}/second`)
    await world.run({ action: 'close' }, { client: 'ben' })
  })

  describe('a page that does not open in time', () => {
    let context: ClientContext
    let running: readonly { close(): Promise<void> }[]
    const open = (path: string) => context.run({ action: 'open', url: home + path }, toolContext())

    beforeAll(async () => {
      const guard = createUrlGuard(world.host, ['*'])
      const proxy = await EgressProxy.start(guard)
      const library = world.host.service('browserLibrary')
      if (!library) throw new Error('the test host has no library')
      const browser = await launchChromium({
        library,
        headless: true,
        chromePath: setup.config.native_chrome_path,
        proxyUrl: proxy.url,
        home: join(setup.dataDir, 'stuck'),
      })
      running = [browser, proxy]
      context = await ClientContext.open({ browser, proxy }, guard, 1500)
    })
    afterAll(async () => {
      await context.close()
      for (const each of running) await each.close()
    })

    test('is discarded when its script never ends, and the cookies are kept', async () => {
      await expect(open('/endless')).rejects.toMatchObject({ code: 'upstream_timeout', message: expect.stringContaining('was discarded') })
      expect(context.isClosed).toBe(false)
      expect(await open('/cookie')).toContain('Page: kept=1')
    })

    test('is kept when it answers, even if it loads slowly', async () => {
      await expect(open('/slow')).rejects.toMatchObject({ code: 'upstream_timeout', message: expect.not.stringContaining('discarded') })
      expect(await context.run({ action: 'get_url' }, toolContext())).toBe(`${home}/slow`)
    })
  })

  test('an abort closes only the page that never answers', async () => {
    await at('/', 'other')
    await at('/spin')
    const abort = new AbortController()
    await world.run({ action: 'click', selector: 'button' }, { signal: AbortSignal.any([abort.signal, AbortSignal.timeout(1000)]) }).then(
      () => expect.unreachable(),
      (error) => expect(error).toMatchObject({ code: 'aborted' }),
    )
    expect(await world.run({ action: 'get_url' }, { client: 'other' })).toBe(`${home}/`)
    expect(await at('/second')).toContain('Opened.')
    await world.run({ action: 'close' }, { client: 'other' })
  })

  test('closes a client that is idle for ten minutes, and the browser with the last', async () => {
    await at('/', 'idle')
    await world.host.advance(599_000)
    expect(await world.run({ action: 'get_url' }, { client: 'idle' })).toBe(`${home}/`)
    await world.host.advance(599_000)
    expect(await world.run({ action: 'get_url' }, { client: 'idle' })).toBe(`${home}/`)
    await world.host.advance(601_000)
    await expect.poll(() => world.run({ action: 'get_url' }, { client: 'idle' }).catch(({ code }) => code)).toBe('conflict')
    expect(await at('/')).toContain('Opened.')
  })

  test('an open during the close of the last context starts a new browser', async () => {
    for (let times = 0; times < 3; times++) {
      const [closed, opened] = await Promise.all([world.run({ action: 'close' }), at('/', `next ${times}`)])
      expect([closed, opened]).toEqual(['Closed.', expect.stringContaining('Opened.')])
      await world.run({ action: 'close' }, { client: `next ${times}` })
    }
  })

  test('the check starts the browser and reports its version', async () => {
    expect(await world.check()).toEqual([expect.objectContaining({ detail: expect.stringMatching(/^Chromium [\d.]+ started in \d+ ms/) })])
  })
})

test('says what to install without a browser', async () => {
  const world = createWorld({
    config: { backend: 'native', native_chrome_path: '/nowhere/chromium', allowed_domains: ['*'] },
    names: { 'a.test': ['93.184.215.14'] },
  })
  await expect(world.run({ action: 'open', url: 'http://a.test/' })).rejects.toMatchObject({
    code: 'unavailable',
    message: expect.stringContaining('native_chrome_path'),
  })
  expect(await world.check()).toMatchObject([{ status: 'fail', fix: expect.stringContaining('apt install chromium') }])
  await world.close()
})
