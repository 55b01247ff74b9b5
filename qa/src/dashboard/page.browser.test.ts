/** The dashboard in a real browser, against the built bundle: docs/dashboard.md. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request as requestOf } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { expectHarmless, spoilAnswers } from './hostile.ts'
import { foundChromium, launchChromium, signedIn, startPageDaemon, type Watched, watchedPage, whySkipped } from './page-daemon.ts'
import { addProcedures, HOSTILE, LONG_LINE, type PageWorld, startPageWorld } from './page-world.ts'

const SOON = { timeout: 15_000 }
describe.skipIf('missing' in foundChromium)(`the dashboard in a browser${whySkipped}`, () => {
  let world: PageWorld
  let browser: Browser
  const opened: Watched[] = []

  beforeAll(async () => {
    world = await startPageWorld()
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
  const go = async (page: Page, place: string, title: string) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor({ state: 'attached' })
  }
  const say = async (page: Page, text: string) => {
    const input = page.getByRole('textbox', { name: 'Message' })
    await input.fill(text)
    await input.press('Enter')
  }
  const answers = async (page: Page): Promise<string[]> =>
    (await page.locator('article.answer > .rich').allTextContents()).map((text) => text.trim())

  test('a link signs a browser in once, and nothing of it stays in the address or in storage', async () => {
    const link = await world.gateway.link()
    const first = await watchedPage(await browser.newContext(), world.gateway.address)
    opened.push(first)
    await first.page.goto(link)
    await first.page.getByRole('heading', { name: 'Overview' }).waitFor()
    const code = link.split('#sign-in=')[1] ?? 'none'
    expect(first.page.url()).not.toContain(code)
    const kept = await first.page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])')
    expect(kept).not.toContain(code)
    expect(kept).not.toMatch(/sluice_session|token/)
    expect(first.requests.filter((url) => url.includes(code))).toEqual([])
    const second = await watchedPage(await browser.newContext(), world.gateway.address)
    opened.push(second)
    await second.page.goto(link)
    await second.page.getByText('This link was used or has expired').waitFor()
    await first.page.reload()
    await first.page.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  test('an answer arrives in pieces, and can be stopped', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await say(page, 'slowly please')
    const answer = page.getByRole('article', { name: 'Agent' })
    await expect.poll(() => answer.count(), SOON).toBe(1)
    const early = (await answer.textContent()) ?? ''
    await expect.poll(async () => ((await answer.textContent()) ?? '').length, SOON).toBeGreaterThan(early.length)
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Aborted.', { exact: true }).waitFor()
    await say(page, 'hello')
    await page.getByText('heard: hello').first().waitFor()
    expect(page.url()).toMatch(/#\/chat\/.+/)
    await page.reload()
    await page.getByText('heard: hello').first().waitFor()
  })

  test('a tool call asks in the chat, and runs when it is approved', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await say(page, 'run node --version')
    await page.getByText('May the agent run').waitFor()
    await expect.poll(() => page.locator('.question .block').textContent(), SOON).toContain('node --version')
    await page.locator('.question').getByRole('button', { name: 'Approve' }).click()
    await page.getByText('It says:').first().waitFor()
    await page.reload()
    await page.getByText('It says:').first().waitFor()
    expect(await page.locator('.said.tool').count()).toBe(1)
    await say(page, 'slowly please')
    await page.getByRole('button', { name: 'Stop' }).waitFor()
    expect(await page.locator('.said.tool').getByText('running').count()).toBe(0)
  })

  test('a dead reply is sent again', async () => {
    world.receiver.status = 400
    await world.send('letter that dies')
    const page = await open()
    await go(page, '/deliveries/outbox?state=dead', 'Deliveries')
    const row = page.getByRole('row').filter({ hasText: 'letter that dies' })
    await row.waitFor()
    await row.getByRole('link').first().click()
    await page.getByRole('heading', { name: /^Reply \d+$/ }).waitFor()
    world.receiver.status = 200
    await page.getByRole('button', { name: 'Send again' }).click()
    await expect.poll(() => world.receiver.bodies.filter((body) => body.includes('letter that dies')).length, SOON).toBe(2)
    await page.locator('.facts').getByText('sent', { exact: true }).waitFor()
  })

  test('a procedure that waits is shown with the reason, and goes on when it is approved', async () => {
    addProcedures(world.gateway)
    const loaded = async () => ((await world.gateway.call('GET', '/api/sops')) as { sops: unknown[] }).sops.length
    await expect.poll(loaded, SOON).toBeGreaterThan(0)
    const page = await open()
    await go(page, '/procedures/deploy-with-approval', 'deploy-with-approval')
    await page.getByRole('button', { name: 'Start' }).click()
    await page.getByRole('textbox', { name: 'Payload' }).fill('{"release":"1.2"}')
    await page.getByRole('dialog').getByRole('button', { name: 'Start' }).click()
    await page.getByRole('heading', { name: 'Run of deploy-with-approval' }).waitFor()
    await page.getByRole('button', { name: 'Approve' }).click()
    await expect.poll(() => page.locator('.facts .badge').first().textContent(), SOON).not.toMatch(/waiting|paused/)
    await go(page, '/procedures', 'Procedures')
    await page.getByRole('button', { name: 'Verify the whole log' }).click()
    await page.getByText('The audit log is intact').waitFor()
  })

  test('the configuration refuses what the command line refuses, shows changes before it saves them, and never a secret', async () => {
    const page = await open()
    await go(page, '/configuration?section=agent', 'Configuration')
    await page.getByLabel('max_iterations').fill('-3')
    await page.getByRole('button', { name: 'Review one change' }).click()
    await expect.poll(() => page.getByRole('alert').textContent(), SOON).toContain('max_iterations')
    await page.getByLabel('max_iterations').fill('17')
    await page.getByRole('button', { name: 'Review one change' }).click()
    await expect.poll(() => page.getByRole('dialog').textContent(), SOON).toContain('17')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    expect(readFileSync(join(world.gateway.dataDir, 'config.toml'), 'utf8')).toContain('max_iterations = 17')
    await go(page, '/configuration?section=channels_config.webhook', 'Configuration')
    const secret = 'a-secret-that-nobody-sees'
    await page.getByLabel('channels_config.webhook.secret').fill(secret)
    await page.getByRole('button', { name: 'Review one change' }).click()
    await page.getByRole('dialog').getByText('a secret').waitFor()
    expect(await page.getByRole('dialog').textContent()).not.toContain(secret)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByPlaceholder('is set; type to replace it').first().waitFor()
    expect(await page.content()).not.toContain(secret)
    expect(readFileSync(join(world.gateway.dataDir, 'config.toml'), 'utf8')).not.toContain(secret)
    await world.gateway.call('PUT', '/api/config', {
      changes: [{ key: 'channels_config.webhook.secret', value: null }],
      version: ((await world.gateway.call('GET', '/api/config')) as { version: string }).version,
    })
  })

  test('the configuration groups settings by task, finds them by their words, and marks what was changed or needs a restart', async () => {
    const page = await open()
    await go(page, '/configuration', 'Configuration')
    await page.getByText(join(world.gateway.dataDir, 'config.toml')).waitFor()
    for (const name of ['Models and cost', 'Chat platforms', 'Approvals and safety', 'Data, backup and retention'])
      await page.getByRole('heading', { name, level: 2 }).waitFor()
    const card = (name: string) => page.locator('.card', { has: page.getByRole('heading', { name }) })
    expect(await card('Models and cost').getByRole('link', { name: 'Set up a provider step by step' }).getAttribute('href')).toBe('#/setup')
    expect(await card('Cluster').getByRole('link').count()).toBe(1)
    await page.getByRole('searchbox').fill('hours interrupted retried')
    await page.getByText('No setting has these words').waitFor()
    await page.getByRole('searchbox').fill('hours retried')
    await page.getByText('delivery.max_age_hours').waitFor()
    await page.getByRole('link', { name: 'Queues, retries and retention' }).click()
    await page.getByLabel('delivery.max_age_hours').fill('25')
    expect(await page.getByLabel('delivery.max_attempts').count()).toBe(0)
    await page.getByRole('link', { name: 'Show all' }).click()
    await page.getByLabel('delivery.max_attempts').waitFor()
    expect(await page.getByLabel('delivery.max_age_hours').inputValue()).toBe('25')
    await page.getByRole('link', { name: 'The database' }).click()
    await page.getByLabel('store.backend').waitFor()
    expect(await page.locator('.field', { hasText: 'store.backend' }).getByText('needs a restart').count()).toBe(1)
    await page.getByRole('link', { name: 'Queues, retries and retention not saved' }).click()
    await page.getByRole('button', { name: 'Review one change' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    const field = page.locator('.field', { hasText: 'delivery.max_age_hours' })
    await field.getByText('changed').waitFor()
    expect(await field.textContent()).toContain('Default: 24')
    await page.getByRole('link', { name: 'Queues, retries and retention 1 changed' }).waitFor()
    await go(page, '/configuration?section=channels_config.telegram.limits', 'Configuration')
    await page.getByLabel('channels_config.telegram.limits.turns_per_hour').waitFor()
    await page.getByRole('link', { name: 'Set it up step by step' }).click()
    await page.getByRole('heading', { name: 'Set up Telegram', level: 1 }).waitFor()
  })

  test('a change is saved at the version of its review, while the page has not read the saved file again', async () => {
    const page = await open()
    await go(page, '/configuration?section=agent', 'Configuration')
    const key = page.getByLabel('max_iterations')
    await key.waitFor()
    // From now on the page cannot read the configuration, as on a machine that is busy.
    await page.route('**/api/config', (route) => (route.request().method() === 'GET' ? undefined : route.continue()))
    const { version } = (await world.gateway.call('GET', '/api/config')) as { version: string }
    await world.gateway.call('PUT', '/api/config', { changes: [{ key: 'agent.max_iterations', value: 11 }], version })
    await key.fill('12')
    await page.getByRole('button', { name: 'Review one change' }).click()
    await expect.poll(() => page.getByRole('dialog').textContent(), SOON).toMatch(/11.*12/)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    const written = () => readFileSync(join(world.gateway.dataDir, 'config.toml'), 'utf8')
    await expect.poll(written, SOON).toContain('max_iterations = 12')
  })

  test('a channel is set up step by step: what to do at the platform, the address to paste, a field for each key, and a check', async () => {
    const page = await open()
    await go(page, '/channels/line/set-up', 'Set up LINE')
    const steps = page.locator('.card')
    await page
      .getByText(`${page.url().split('/#')[0]}/line`, { exact: true })
      .first()
      .waitFor()
    await page.getByText('It is not reachable from outside').waitFor()
    await steps.filter({ hasText: 'LINE Developers Console' }).getByLabel('channel_secret').fill('5'.repeat(32))
    await page.getByLabel('channel_access_token').fill('token-of-a-test')
    await page.getByLabel('allowed_users').fill('U0123456789abcdef0123456789abcdef')
    await page.getByRole('button', { name: 'Review and save' }).click()
    await page.getByRole('dialog').getByText('channels_config.line.channel_secret').waitFor()
    expect(await page.getByRole('dialog').textContent()).not.toContain('token-of-a-test')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved.').waitFor()
    await page.getByRole('button', { name: 'Check it now' }).click({ timeout: 30_000 })
    await page.getByText('The check asks the platform').waitFor({ state: 'detached' })
    const { version } = (await world.gateway.call('GET', '/api/config')) as { version: string }
    const changes = [{ key: 'channels_config.line.enabled', value: false }]
    await world.gateway.call('PUT', '/api/config', { changes, version })
  })

  test('a procedure is made from a template: checked while it is typed, simulated, saved, and edited at the version that was opened', async () => {
    const page = await open()
    await go(page, '/procedure-files', 'New procedure')
    const toml = page.getByLabel('SOP.toml')
    await page.getByText('No problems were found.').waitFor()
    const whole = (await toml.inputValue()).replace(/^name = .*$/m, 'name = "made-here"')
    await toml.fill(whole.replace('description', 'descriptoin'))
    await page.getByText('did you mean `description`?').waitFor()
    expect(await page.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true)
    await toml.fill(whole)
    await page.getByLabel('Name of the folder').fill('made-here')
    await page.getByText('No problems were found.').waitFor()
    await page.getByRole('button', { name: 'Simulate' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Simulate' }).click()
    await page.getByRole('dialog').getByText('model calls').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).last().click()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'made-here', level: 1 }).waitFor()
    const file = join(world.gateway.dataDir, 'sops/made-here/SOP.toml')
    expect(readFileSync(file, 'utf8')).toBe(whole)
    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByText('No problems were found.').waitFor()
    writeFileSync(file, `${whole}\n# changed elsewhere\n`)
    await toml.fill(`${whole}\n# changed here\n`)
    await page.getByText('No problems were found.').waitFor()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('were changed after they were opened').waitFor()
    expect(readFileSync(file, 'utf8')).toContain('changed elsewhere')
    await page.getByRole('button', { name: 'Discard mine' }).click()
    await expect.poll(() => toml.inputValue(), SOON).toContain('changed elsewhere')
    rmSync(dirname(file), { recursive: true })
  })

  test('typed changes of the configuration stay when the file is changed elsewhere, and a stale review is not saved', async () => {
    const page = await open()
    await go(page, '/configuration?section=agent', 'Configuration')
    await page.getByLabel('max_iterations').fill('23')
    const setElsewhere = async (value: number) => {
      const { version } = (await world.gateway.call('GET', '/api/config')) as { version: string }
      await world.gateway.call('PUT', '/api/config', { changes: [{ key: 'agent.max_iterations', value }], version })
    }
    const asked = page.waitForResponse((response) => new URL(response.url()).pathname === '/api/config')
    await setElsewhere(19)
    await asked
    await page.waitForTimeout(500)
    expect(await page.getByLabel('max_iterations').inputValue()).toBe('23')
    await page.getByRole('button', { name: 'Review one change' }).click()
    await expect.poll(() => page.getByRole('dialog').textContent(), SOON).toContain('19')
    await setElsewhere(20)
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('alert').filter({ hasText: 'changed' }).first().waitFor(SOON)
    expect(readFileSync(join(world.gateway.dataDir, 'config.toml'), 'utf8')).toContain('max_iterations = 20')
  })

  test('without a provider, a page sets one up, tests it, and sends the first message', async () => {
    const gateway = await startPageDaemon()
    const watched = await signedIn(browser, gateway)
    opened.push(watched)
    const { page } = watched
    await page.getByRole('link', { name: 'Set up a provider' }).click()
    await page.getByLabel('Service').selectOption('custom')
    await page.getByLabel('Address').fill(`${world.model.url}/v1`)
    await page.getByLabel('Model').fill('small')
    await page.getByRole('button', { name: 'Test it' }).click()
    await page.getByRole('button', { name: 'Save and send the first message' }).click(SOON)
    await page.getByRole('heading', { name: 'Chat', level: 1 }).waitFor({ state: 'attached' })
    const models = async () => ((await gateway.call('GET', '/api/status')) as { models: string[] }).models
    await expect.poll(models, SOON).toEqual(['openai:small'])
    await say(page, 'the first message')
    await page.getByText('heard: the first message').first().waitFor(SOON)
    await page.context().close()
    await gateway.stop()
  }, 90_000)

  test('the page works below a path of a proxy', async () => {
    const target = new URL(world.gateway.daemon.url)
    const forward = ({ url = '', ...request }: IncomingMessage) => ({
      host: target.hostname,
      port: target.port,
      method: request.method,
      path: url.replace(/^\/below\/here/, ''),
      headers: request.headers,
    })
    const proxy = createServer((request, answer) => {
      if (!request.url?.startsWith('/below/here/')) return void answer.writeHead(404).end()
      const { method, headers, url } = request
      const onward = requestOf(forward({ method, headers, url } as IncomingMessage), (got) => {
        answer.writeHead(got.statusCode ?? 502, got.headers)
        got.pipe(answer)
      })
      request.pipe(onward)
    })
    proxy.on('upgrade', ({ method, headers, url }, socket) => {
      const onward = requestOf(forward({ method, headers, url } as IncomingMessage))
      onward.on('upgrade', (got, other, first) => {
        socket.write(
          `HTTP/1.1 101 Switching Protocols\r\n${Object.entries(got.headers)
            .map(([name, value]) => `${name}: ${value}`)
            .join('\r\n')}\r\n\r\n`,
        )
        socket.write(first)
        other.pipe(socket).pipe(other)
        for (const one of [other, socket]) one.on('error', () => one.destroy())
      })
      onward.end()
    })
    await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done))
    const address = `http://localhost:${(proxy.address() as AddressInfo).port}/below/here/`
    const watched = await watchedPage(await browser.newContext(), address)
    opened.push(watched)
    const { page } = watched
    await page.goto(address + new URL(await world.gateway.link()).hash)
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.locator('.side .live').getByText('Live', { exact: true }).waitFor()
    await go(page, '/chat', 'Chat')
    await say(page, 'through the proxy')
    await page.getByText('heard: through the proxy').first().waitFor(SOON)
    await page.reload()
    await page.getByText('heard: through the proxy').first().waitFor(SOON)
    await page.context().close()
    opened.splice(opened.indexOf(watched), 1)
    expect(watched.faults).toEqual([])
    proxy.close()
    proxy.closeAllConnections()
  })

  test('a revoked session ends within a second', async () => {
    const page = await open()
    const { devices } = (await world.gateway.call('GET', '/api/devices')) as { devices: { id: string; name: string; paired_at: string }[] }
    const [newest] = devices.filter(({ name }) => name.startsWith('dashboard')).toSorted((a, b) => b.paired_at.localeCompare(a.paired_at))
    const startedAt = performance.now()
    await world.gateway.call('DELETE', `/api/devices/${newest?.id}`)
    await page.getByRole('heading', { name: 'Sign in to Sluice' }).waitFor({ timeout: 5000 })
    // The page itself needs a moment on a busy machine; the server's part is measured in its own tests.
    expect(performance.now() - startedAt).toBeLessThan(2000)
  })

  test('two pages show the same conversation', async () => {
    const page = await open()
    const other = await page.context().newPage()
    await go(page, '/chat', 'Chat')
    await say(page, 'first words')
    await page.getByText('heard: first words').first().waitFor()
    await other.goto(page.url())
    await other.getByText('heard: first words').first().waitFor()
    await say(page, 'second words')
    await other.getByText('heard: second words').first().waitFor(SOON)
    await say(other, 'third words')
    await page.getByText('heard: third words').first().waitFor(SOON)
    for (const one of [page, other]) expect(await answers(one)).toEqual(['first', 'second', 'third'].map((word) => `heard: ${word} words`))
  })

  test('a page shows what another one asked while its own answer arrived, was late, or could not be drawn', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await say(page, 'one')
    await page.getByText('heard: one').first().waitFor()
    const other = await page.context().newPage()
    await other.goto(page.url())
    await other.getByText('heard: one').first().waitFor()
    // The turns of one session run one after the other: this page waits for its own answer while that of the other page ends.
    await say(other, 'slowly two')
    await expect.poll(() => other.getByRole('article', { name: 'Agent' }).count(), SOON).toBe(2)
    await say(page, 'three')
    await page.getByText('heard: three').first().waitFor(SOON)
    await page.getByText('one two three four').first().waitFor(SOON)
    // The browser draws no pictures of this page, as of one that is hidden: its own answer must end nevertheless.
    await page.evaluate('window.requestAnimationFrame = () => 0')
    await say(page, 'four')
    await expect.poll(() => answers(page), SOON).toContain('heard: four')
    await page.getByText('Working…').waitFor({ state: 'detached' })
    // The answer to an earlier request arrives after that to a later one.
    let asked = 0
    await page.route('**/messages?*', async (route) => {
      const got = await route.fetch()
      asked += 1
      if (asked === 1) await new Promise((done) => setTimeout(done, 3000))
      await route.fulfill({ response: got })
    })
    await say(other, 'five')
    await expect.poll(() => asked, SOON).toBe(1)
    await say(other, 'six')
    await expect.poll(() => answers(page), SOON).toContain('heard: six')
    await page.unroute('**/messages?*')
    await page.waitForTimeout(500)
    for (const one of [page, other])
      expect((await answers(one)).filter((text) => text.startsWith('heard'))).toEqual(
        ['one', 'three', 'four', 'five', 'six'].map((word) => `heard: ${word}`),
      )
  })

  test('a client sees its own conversations and nothing for operators', async () => {
    const context = await browser.newContext()
    const watched = await watchedPage(context, world.gateway.address)
    opened.push(watched)
    await watched.page.goto(await world.gateway.link('client'))
    await watched.page.getByRole('textbox', { name: 'Message' }).waitFor()
    expect(await watched.page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents()).toEqual([
      'Chat',
      'Approvals',
      'This browser',
    ])
  })

  test('hostile texts stay text on every page', async () => {
    for (const text of HOSTILE) await world.send(text, undefined, text)
    world.receiver.status = 400
    await world.send(LONG_LINE)
    await world.gateway.call('POST', '/api/channel-events', {
      type: 'human_approval_request',
      content: { title: HOSTILE[0], message: HOSTILE.join('\n') },
      channels: ['dashboard'],
      run_id: 'hostile',
      step_id: 'one',
      workflow_name: HOSTILE[1],
    })
    await world.gateway.call('POST', '/api/devices', { name: '<img src=x onerror=window.hacked=1>' })
    const page = await open()
    await go(page, '/chat', 'Chat')
    for (const text of HOSTILE) {
      await say(page, text.replaceAll('\u0000', ''))
      await page.waitForTimeout(200)
    }
    for (const [place, title] of PLACES) {
      await go(page, place, title)
      await page.waitForTimeout(400)
      await expectHarmless(page, place)
    }
    const { messages } = (await world.gateway.call('GET', '/api/deliveries/inbox?limit=20')) as { messages: { number: number }[] }
    for (const { number } of messages.slice(0, 6)) {
      await go(page, `/deliveries/inbox/${number}`, `Message ${number}`)
      await page.getByRole('heading', { name: 'Request as it arrived' }).waitFor()
      expect(await page.evaluate('window.hacked')).toBeUndefined()
    }
  })

  test.each([
    ['/conversations', 'Conversations', '**/api/sessions**'],
    ['/tools', 'Tools and skills', '**/api/skills'],
    ['/tools', 'Tools and skills', '**/api/mcp/servers'],
    ['/channels', 'Channels', '**/api/channels'],
  ])('whatever the answers for %s say stays text: %s, %s', async (place, title, path) => {
    const folder = join(world.gateway.dataDir, 'workspace/skills/bake')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), `---\nname: bake\ndescription: Bakes bread.\n---\n\n${HOSTILE.join('\n')}\n`)
    const page = await open()
    const tool = { name: 'add', description: 'Adds', used: true, risk: 'write', accepted: false, hash: 'h' }
    const server = {
      name: 'notes',
      enabled: true,
      transport: 'stdio',
      source: 'notes',
      state: 'down',
      failure: 'It is away',
      scope: 'shared',
    }
    const servers = [{ ...server, resources: false, prompts: false, problems: ['none'], tools: [tool] }]
    await spoilAnswers(page, path, path.includes('mcp') ? { servers } : undefined)
    await page.reload()
    await go(page, place, title)
    await expect.poll(() => page.evaluate('document.querySelectorAll(".loading").length'), SOON).toBe(0)
    await page.waitForTimeout(300)
    await expectHarmless(page, `${place} with ${path}`)
  })
})

/** Every place of the page, with its title. */
const PLACES = [
  ['/', 'Overview'],
  ['/chat', 'Chat'],
  ['/conversations', 'Conversations'],
  ['/approvals', 'Approvals'],
  ['/turns', 'Turns'],
  ['/deliveries/inbox', 'Deliveries'],
  ['/deliveries/outbox', 'Deliveries'],
  ['/procedures', 'Procedures'],
  ['/procedure-files', 'New procedure'],
  ['/channels', 'Channels'],
  ['/channels/slack/set-up', 'Set up Slack'],
  ['/hardware', 'Hardware'],
  ['/configuration', 'Configuration'],
  ['/setup', 'Set up a provider'],
  ['/logs/lines', 'Logs and events'],
  ['/devices', 'Devices'],
  ['/tools', 'Tools and skills'],
  ['/features', 'Features'],
  ['/logs', 'Logs and events'],
] as const
