/** What operators do at the places of the dashboard: discard, read a conversation, attach, accept skills and tools, follow the log. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { foundChromium, launchChromium, signedIn, type Watched, watchedPage, whySkipped } from './page-daemon.ts'
import { linkCommandLine, type PageWorld, startPageWorld } from './page-world.ts'

const SOON = { timeout: 15_000 }

/** A server of the Model Context Protocol on standard input, whose tool has the description of the file next to it. */
const MCP_SERVER = `
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (method === 'initialize')
    answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'notes', version: '1' } })
  else if (method === 'tools/list')
    answer(id, { tools: [{ name: 'add', description: readFileSync(new URL('description.txt', import.meta.url), 'utf8'), inputSchema: { type: 'object' } }] })
  else if (id !== undefined) answer(id, {})
}
`

interface Audited {
  readonly kind: string
  readonly by: string
  readonly detail: Readonly<Record<string, unknown>>
}

describe.skipIf('missing' in foundChromium)(`the places of the dashboard${whySkipped}`, () => {
  let world: PageWorld
  let browser: Browser
  let tools = ''
  const opened: Watched[] = []

  beforeAll(async () => {
    world = await startPageWorld()
    tools = join(world.gateway.dataDir, 'mcp-server')
    mkdirSync(tools)
    writeFileSync(join(tools, 'server.mjs'), MCP_SERVER)
    writeFileSync(join(tools, 'description.txt'), 'Adds a note.')
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
  const go = async (page: Page, place: string, title: string | RegExp) => {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`)
    await page.getByRole('heading', { name: title, level: 1 }).waitFor({ state: 'attached' })
  }
  const say = async (page: Page, text: string) => {
    const input = page.getByRole('textbox', { name: 'Message' })
    await input.fill(text)
    await input.press('Enter')
  }
  const audited = async (kind: string): Promise<Audited[]> => {
    const { records } = (await world.gateway.call('GET', '/api/sops/audit?limit=200')) as { records: Audited[] }
    return records.filter((record) => record.kind === kind)
  }

  test('a dead reply is discarded, and the audit log has who did it', async () => {
    world.receiver.status = 400
    await world.send('letter that nobody wants')
    const page = await open()
    await go(page, '/deliveries/outbox?state=dead', 'Deliveries')
    const row = page.getByRole('row').filter({ hasText: 'letter that nobody wants' })
    await row.getByRole('link').first().click()
    await page.getByRole('heading', { name: /^Reply \d+$/ }).waitFor()
    await page.getByRole('button', { name: 'Discard' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Discard' }).click()
    await page.locator('.facts').getByText('discarded', { exact: true }).waitFor()
    expect(await audited('delivery_discarded')).toMatchObject([{ by: expect.stringMatching(/^device:/), detail: { box: 'outbox' } }])
    await go(page, '/deliveries/outbox?state=discarded', 'Deliveries')
    await page.getByRole('row').filter({ hasText: 'letter that nobody wants' }).waitFor()
    world.receiver.status = 200
  })

  test('the conversation of another person is shown only after a person agreed, and that is recorded', async () => {
    await world.send('a private matter')
    const page = await open()
    await go(page, '/conversations?channel=webhook', 'Conversations')
    await page.getByRole('row').filter({ hasText: 'ada' }).getByRole('link').first().click()
    await page.getByRole('heading', { name: 'Conversation', exact: true, level: 1 }).waitFor()
    await page.getByText('belongs to another person').waitFor()
    expect(await page.getByText('a private matter').count()).toBe(0)
    expect(await audited('conversation_read')).toEqual([])
    await page.getByRole('button', { name: 'Open it, and record that' }).click()
    await page.getByText('a private matter').first().waitFor()
    expect(await audited('conversation_read')).toMatchObject([
      { by: expect.stringMatching(/^device:/), detail: { session: expect.stringContaining('ada') } },
    ])
    await go(page, '/procedures', 'Procedures')
    await page.getByText('conversation read').first().waitFor()
  })

  test('words of other people are found only after a person agreed, and lead to their place', async () => {
    await world.send('the gardener comes on Tuesday')
    const before = (await audited('conversation_read')).length
    const page = await open()
    await go(page, '/conversations?in=messages&find=GARDENER', 'Conversations')
    const agree = page.getByRole('button', { name: 'Search, and record that' })
    await agree.waitFor()
    expect(await page.getByText('gardener comes').count()).toBe(0)
    await agree.click()
    await page
      .getByRole('link', { name: /the gardener comes on Tuesday/ })
      .first()
      .click()
    await page.getByRole('button', { name: 'Open it, and record that' }).click()
    await page.getByText('Up to the place that was found').waitFor()
    await page.getByText('the gardener comes on Tuesday').first().waitFor()
    expect(await audited('conversation_read')).toHaveLength(before + 1)
  })

  test('the chat finds words in the messages of this browser, and opens the conversation at their place', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await say(page, 'remember the violet umbrella')
    await page
      .getByText(/heard: remember the violet umbrella/)
      .first()
      .waitFor(SOON)
    await page.getByLabel('Find words').fill('VIOLET')
    await page.getByLabel('Find words').press('Enter')
    const found = page
      .getByRole('region', { name: 'Found in messages' })
      .getByRole('link', { name: /violet umbrella/ })
      .first()
    await found.waitFor(SOON)
    await say(page, 'and now something else')
    const later = page.locator('.said.answer').getByText(/heard: and now something else/)
    await later.waitFor(SOON)
    await found.click()
    await page.getByText('shown up to the place that was found').waitFor(SOON)
    await page.locator('.said.person').getByText('remember the violet umbrella').waitFor(SOON)
    expect(await later.count()).toBe(0)
    await page.getByRole('link', { name: 'Go to its end' }).click()
    await later.waitFor(SOON)
    await page.getByRole('textbox', { name: 'Message' }).waitFor(SOON)
  })

  test('a file is attached to a message, and its path reaches the agent', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await page.getByLabel('Files', { exact: true }).setInputFiles({ name: 'list.txt', mimeType: 'text/plain', buffer: Buffer.from('milk') })
    const attached = page.getByRole('list', { name: 'Attached files' })
    await attached.getByText('list.txt').waitFor()
    await attached.getByText('is uploaded').waitFor({ state: 'detached' })
    await say(page, 'what is on it?')
    await page
      .getByText(/heard: what is on it\?/)
      .first()
      .waitFor(SOON)
    await page
      .getByText(/attachments\/[a-z0-9_-]+\/[0-9a-f]{64}\.txt/)
      .first()
      .waitFor(SOON)
    await page.locator('.said.person').getByText('Document:').waitFor()
    await page.reload()
    await page.locator('.said.person').getByText('Document:').waitFor(SOON)
  })

  test('an answer shows its Markdown, and an address is opened only after a person has seen it whole', async () => {
    const page = await open()
    await go(page, '/chat', 'Chat')
    await say(page, '**bold** [the shop](https://shop.example/?q=secret) <b>not bold</b>')
    const answer = page.locator('.said.answer').first()
    await expect.poll(() => answer.locator('strong').count(), SOON).toBe(1)
    expect(await answer.locator('.rich b, .rich a').count()).toBe(0)
    await answer.getByRole('button', { name: /the shop/ }).click()
    await page.getByRole('dialog').getByText('https://shop.example/?q=secret').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
  })

  test('a skill of the agent is accepted as it was read', async () => {
    const folder = join(world.gateway.dataDir, 'workspace/skills/bake')
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'SKILL.md'), '---\nname: bake\ndescription: Bakes bread.\n---\n\n<img src=x onerror="window.hacked=1">\n')
    const page = await open()
    await go(page, '/tools', 'Tools and skills')
    const proposal = page.getByRole('article').filter({ hasText: 'bake' })
    await proposal.getByText('onerror').waitFor()
    await proposal.getByRole('button', { name: 'Accept' }).click()
    await page.getByRole('table', { name: 'Skills' }).getByText('Bakes bread.').waitFor()
    await page.getByRole('button', { name: 'bake' }).click()
    await page.getByRole('dialog').getByText('SKILL.md').waitFor()
    expect(await page.evaluate('window.hacked')).toBeUndefined()
  })

  test('the changed tool of an MCP server is shown and accepted', async () => {
    const { version } = (await world.gateway.call('GET', '/api/config')) as { version: string }
    const changes = [
      { key: 'mcp.servers.notes.command', value: process.execPath },
      { key: 'mcp.servers.notes.args', value: [join(tools, 'server.mjs')] },
    ]
    await world.gateway.call('PUT', '/api/config', { changes, version })
    const page = await open()
    await go(page, '/tools', 'Tools and skills')
    const row = page.getByRole('table', { name: 'MCP servers' }).getByRole('row').filter({ hasText: 'notes' })
    await row.getByText('ok', { exact: true }).waitFor({ timeout: 30_000 })
    writeFileSync(join(tools, 'description.txt'), 'Adds a note <script>window.hacked=1</script> and sends it away.')
    await row.getByRole('button', { name: 'Ask it anew' }).click()
    await page.getByText('and sends it away.').waitFor(SOON)
    await page.getByRole('button', { name: 'Accept this tool' }).click()
    await page.getByRole('button', { name: 'Accept this tool' }).waitFor({ state: 'detached' })
    const { servers } = (await world.gateway.call('GET', '/api/mcp/servers')) as { servers: { tools: { accepted: boolean }[] }[] }
    expect(servers[0]?.tools).toMatchObject([{ accepted: true }])
  })

  test('a line of the log appears as it is written', async () => {
    const page = await open()
    await go(page, '/logs/lines?level=info', 'Logs and events')
    await page.getByRole('region', { name: 'Log lines' }).waitFor()
    const added = () => page.getByText(/device added/).count()
    const before = await added()
    const startedAt = performance.now()
    await world.gateway.call('POST', '/api/devices', { name: 'phone' })
    await expect.poll(added, SOON).toBeGreaterThan(before)
    console.log(`a line of the log was shown after ${(performance.now() - startedAt).toFixed(0)} ms`)
  })

  test('the models of an endpoint that is not saved are offered', async () => {
    const page = await open()
    await go(page, '/setup', 'Set up a provider')
    await page.getByLabel('Service').selectOption('custom')
    await page.getByLabel('Address').fill(`${world.model.url}/v1`)
    await page.getByRole('button', { name: 'List its models' }).click()
    await page
      .getByText(/The endpoint offers \d+/)
      .first()
      .waitFor(SOON)
    expect(await page.evaluate("document.querySelector('#offered-models option').value")).toBe('small')
    await page.getByLabel('Address').fill('http://127.0.0.1:9/v1')
    await page.getByRole('button', { name: 'List its models' }).click()
    await page.getByRole('alert').first().waitFor(SOON)
  })

  test('the nodes have a place only in a cluster, which shows shards without an owner and drains a node', async () => {
    const page = await open()
    const nodes = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Nodes' })
    expect(await nodes.count()).toBe(0)
    // The answers of a cluster on PostgreSQL, which its own tests start; here only the page is tested.
    await page.route('**/api/overview**', async (route) => {
      const answer = await route.fetch()
      const { status, ...others } = (await answer.json()) as { status: object }
      await route.fulfill({ json: { ...others, status: { ...status, cluster: { name: 'shop', node: 'a' } } } })
    })
    const node = {
      roles: ['ingress', 'worker'],
      url: null,
      version: '0.1.0',
      schema_version: 1,
      config_version: 7,
      key_id: null,
      leases: ['channel telegram'],
      folders: [{ name: 'files', path: '/data/files', digest: null, problem: null }],
      programs: [{ server: 'notes', processes: 2 }],
    }
    const started_at = new Date().toISOString()
    const answer = {
      name: 'shop',
      node: 'a',
      unowned_shards: 12,
      nodes: [
        { ...node, node: 'a', state: 'up', shards: 244, silent_ms: 100, clock_offset_ms: 20, started_at },
        { ...node, node: 'b\u202e<img src=x>', state: 'dead', shards: 0, silent_ms: 60_000, clock_offset_ms: -3_600_000, started_at },
      ],
      problems: [{ state: 'failing', text: 'The skills differ between nodes: a | b.', fix: 'give all nodes the same files' }],
    }
    await page.route('**/api/cluster', (route) => route.fulfill({ json: answer }))
    const drained: string[] = []
    await page.route('**/api/cluster/nodes/**', (route) => {
      drained.push(`${route.request().method()} ${new URL(route.request().url()).pathname}`)
      return route.fulfill({ json: answer })
    })
    await page.reload()
    await nodes.click()
    await page.getByText('12 shards have no owner now').waitFor(SOON)
    await page.getByRole('alert').getByText('The skills differ between nodes: a | b. To repair it: give all nodes the same files').waitFor()
    expect(await page.getByText('notes (2 running)').count()).toBe(2)
    await page.getByRole('row').filter({ hasText: 'dead' }).waitFor()
    expect(await page.locator('main img').count()).toBe(0)
    await page.getByRole('row').filter({ hasText: '(this one)' }).getByRole('button', { name: 'Drain' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
    await expect.poll(() => drained, SOON).toEqual(['POST /api/cluster/nodes/a/drain'])
  })

  test('the keyboard opens every place by some letters, goes to the first field, and lists its keys', async () => {
    const page = await open()
    await go(page, '/', 'Overview')
    await page.keyboard.press('Control+k')
    await page.keyboard.type('open tool')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Tools and skills', level: 1 }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.keyboard.press('Control+k')
    await page.keyboard.type('dead')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Deliveries', level: 1 }).waitFor()
    expect(page.url()).toMatch(/outbox\?state=dead$/)
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('/')
    const field = await page.evaluate<string>('document.activeElement.labels[0].firstChild.textContent')
    expect(field).toBe('Channel')
    await page.keyboard.type('/?')
    expect(await page.getByRole('textbox', { name: field, exact: true }).inputValue()).toBe('/?')
    expect(await page.getByRole('dialog').count()).toBe(0)
  })

  test('a client finds only its own places with the keyboard', async () => {
    const watched = await watchedPage(await browser.newContext(), world.gateway.address)
    opened.push(watched)
    const { page } = watched
    await page.goto(await world.gateway.link('client'))
    await page.getByRole('textbox', { name: 'Message' }).waitFor(SOON)
    await page.keyboard.press('Control+k')
    const names = page.getByRole('dialog').getByRole('listitem')
    await expect.poll(() => names.allTextContents(), SOON).toContain('Open Approvals')
    expect((await names.allTextContents()).filter((name) => name.startsWith('Open'))).toEqual([
      'Open Chat',
      'Open Approvals',
      'Open This browser',
    ])
  })

  test('the manifest of the page lets a phone install it, and its icon is there', async () => {
    const page = await open()
    const { manifest, icon } = await page.evaluate<{ manifest: Record<string, unknown>; icon: string }>(`(async () => {
      const href = document.querySelector('link[rel="manifest"]').href
      const manifest = await (await fetch(href)).json()
      const resolved = (path) => new URL(path, href).href
      const answer = await fetch(resolved(manifest.icons[0].src))
      return { manifest: { ...manifest, start_url: resolved(manifest.start_url), scope: resolved(manifest.scope) }, icon: answer.headers.get('content-type') }
    })()`)
    const home = `${world.gateway.address}/`
    expect(manifest).toMatchObject({ name: 'Sluice', display: 'standalone', start_url: home, scope: home })
    expect(icon).toBe('image/png')
  })

  test('a chart shows a figure of a day, a week or a month, with its numbers as a table', async () => {
    await world.send('count this turn')
    const page = await open()
    await go(page, '/', 'Overview')
    const card = page.locator('.card').filter({ has: page.getByRole('heading', { name: /^The last/ }) })
    await card.locator('canvas').waitFor(SOON)
    const numbers = async () => (await card.locator('details tbody td').allTextContents()).map(Number)
    await card.getByText('As a table').click()
    await expect.poll(async () => (await numbers()).at(-1) ?? 0, SOON).toBeGreaterThan(0)
    expect(await numbers()).toHaveLength(24)
    await card.getByRole('button', { name: 'week' }).click()
    await expect.poll(numbers, SOON).toHaveLength(168)
    await card.getByRole('button', { name: 'Tokens' }).click()
    await card.getByRole('columnheader', { name: 'test' }).waitFor(SOON)
    await go(page, '/channels/webhook', 'webhook')
    await card.getByRole('heading', { name: /[1-9]\d* turns/ }).waitFor(SOON)
    expect(await card.getByRole('button', { name: 'Cost' }).count()).toBe(0)
  })

  test('the rule of a room is set, tried with a transcript before it is saved, listed, and erased', async () => {
    const page = await open()
    await go(page, '/rooms', 'Rooms')
    await page.getByText('No room yet.').waitFor(SOON)
    await go(page, `/rooms/${encodeURIComponent('webhook/default/team%2F1')}`, 'team/1')
    await page.getByLabel('It answers').selectOption('never')
    await page.getByLabel('Turns in an hour').fill('3')
    await page.getByLabel('Transcript').fill('ann: who has the key?\nbob: @bot hello')
    await page.getByRole('button', { name: 'Play it' }).click()
    await page.getByText('0 of 2 messages run a turn').waitFor(SOON)
    await page.getByLabel('It answers').selectOption('always')
    await page.getByRole('button', { name: 'Play it' }).click()
    await page.getByText('2 of 2 messages run a turn').waitFor(SOON)
    await page.getByRole('button', { name: 'Save the rule' }).click()
    await page.getByText('The rule is in force.').waitFor(SOON)
    expect(await world.gateway.call('GET', '/api/rooms')).toMatchObject({ rooms: [{ rule: { respond: 'always', turns_per_hour: 3 } }] })
    await page.getByLabel('Conversation').selectOption('person')
    await page.getByRole('button', { name: 'Save the rule' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Change it' }).click()
    await page.locator('.facts').getByText('one for each person').waitFor(SOON)
    await go(page, '/rooms', 'Rooms')
    await page.getByRole('row').filter({ hasText: 'team/1' }).getByRole('link').click()
    await page.getByRole('heading', { name: 'team/1', level: 1 }).waitFor()
    await page.getByRole('button', { name: 'Erase' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Erase' }).click()
    await page.getByText('No room yet.').waitFor(SOON)
  })

  test('linked accounts are shown by name, with their ids on request, and are unlinked only after a person agreed', async () => {
    await linkCommandLine(world.gateway)
    const page = await open()
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('Control+K')
    await page.getByLabel('Find a command').fill('people')
    await page.keyboard.press('Enter')
    await page.getByRole('row').filter({ hasText: 'test' }).getByRole('link', { name: 'the command line' }).click()
    await page.getByRole('heading', { name: 'the command line', level: 1 }).waitFor()
    await page.getByText('those of the command line, for all accounts').waitFor(SOON)
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'test' }) })
    expect(await page.getByText('device:').count()).toBe(0)
    await page.getByRole('button', { name: 'Show the ids' }).click()
    await row.getByText(/^device:/).waitFor()
    await row.getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click()
    expect(await world.gateway.call('GET', '/api/people')).toMatchObject({ people: [{ owner: 'cli' }] })
    await row.getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Unlink' }).click()
    await page.getByRole('heading', { name: 'People', level: 1 }).waitFor()
    await page.getByText('No accounts are linked.').waitFor(SOON)
    expect(await audited('people_unlinked')).toMatchObject([{ by: expect.stringMatching(/^device:/), detail: { others: ['cli'] } }])
    // A link that is made meanwhile appears by itself.
    await linkCommandLine(world.gateway)
    await page.getByRole('link', { name: 'the command line' }).waitFor(SOON)
  })

  test('a channel has the name of its platform, the address to register, and checks', async () => {
    const page = await open()
    await go(page, '/channels', 'Channels')
    await page.getByRole('row').filter({ hasText: 'Telegram' }).getByRole('link', { name: 'Set it up' }).waitFor(SOON)
    await page.getByRole('link', { name: 'Generic webhook' }).click()
    await page.getByRole('heading', { name: 'Generic webhook', level: 1 }).waitFor()
    await page.getByText(`${world.gateway.address}/webhook/channel`, { exact: true }).waitFor()
    await page.getByText('It is not reachable from outside').waitFor()
    await page.getByRole('button', { name: 'Check it now' }).click()
    await page.getByText('Nothing was found that is wrong with it.').waitFor(SOON)
    const checks = [
      { check: 'channel-webhook', status: 'fail', detail: 'the receiver answers 500', fix: 'repair the receiver' },
      { check: 'store', status: 'ok', detail: 'the store is fine', fix: null },
    ]
    await page.route('**/api/doctor', (route) => route.fulfill({ json: { checks } }))
    await page.getByRole('button', { name: 'Check it now' }).click()
    const table = page.getByRole('table', { name: 'Checks of the channel' })
    await table.getByText('repair the receiver').waitFor(SOON)
    expect(await table.getByText('the store is fine').count()).toBe(0)
  })

  test('a link lets another person in with the role that was chosen', async () => {
    const page = await open()
    await go(page, '/devices', 'Devices')
    await page.getByRole('button', { name: 'Make a link for a browser' }).click()
    const link = (await page.locator('code.link').textContent(SOON)) ?? ''
    await page.getByRole('img', { name: 'QR code' }).waitFor()
    await page.getByText('Only a browser on the machine of the gateway').waitFor()
    const other = await watchedPage(await browser.newContext(), world.gateway.address)
    opened.push(other)
    await other.page.goto(link)
    await other.page.getByRole('textbox', { name: 'Message' }).waitFor(SOON)
    expect(await other.page.getByRole('link', { name: 'Configuration' }).count()).toBe(0)
  })

  test('the test of a provider shows that it runs and is cancelled, and an address needs its scheme', async () => {
    const page = await open()
    await go(page, '/setup', 'Set up a provider')
    await page.getByLabel('Service').selectOption('custom')
    await page.getByLabel('Model', { exact: true }).fill('test')
    await page.getByLabel('Address').fill('127.0.0.1:9/v1')
    await page.getByText('An address begins with http').waitFor()
    expect(await page.getByRole('button', { name: 'Test it' }).isDisabled()).toBe(true)
    await page.route('**/api/models/test', () => undefined)
    await page.getByLabel('Address').fill(`${world.model.url}/v1`)
    await page.getByRole('button', { name: 'Test it' }).click()
    await page.getByRole('progressbar', { name: 'Tests that have ended' }).waitFor()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByText('The test was cancelled.').waitFor()
    await page.unroute('**/api/models/test')
    const results = [
      { type: 'result', test: 'text', outcome: 'ok', detail: '', took_ms: 5, cost_usd: 0 },
      { type: 'result', test: 'tool_call', outcome: 'failed', detail: 'no call', took_ms: 5, cost_usd: 0 },
    ]
    const body = results.map((result) => `${JSON.stringify(result)}\n`).join('')
    await page.route('**/api/models/test', (route) => route.fulfill({ contentType: 'application/x-ndjson', body }))
    await page.getByRole('button', { name: 'Test it' }).click()
    await page.locator('.note.warn').getByText('did not pass: tool call').waitFor(SOON)
    expect(await page.locator('.note.ok').count()).toBe(0)
  })

  test('messages and replies are searched by person and text with the controls, by keyboard, and the address keeps the search', async () => {
    world.receiver.status = 200
    for (const [text, sender] of [
      ['the blue kettle', 'grace'],
      ['the red kettle', 'grace'],
      ['the red kettle', 'linus'],
    ] as const) {
      const answered = world.receiver.bodies.length
      await world.send(text, undefined, sender)
      // Messages of one sender that arrive together become one turn with one reply.
      await expect.poll(() => world.receiver.bodies.length, SOON).toBeGreaterThan(answered)
    }
    const page = await open()
    for (const [box, person, column] of [
      ['inbox', 'Sender', 'sender'],
      ['outbox', 'Receiver', 'to'],
    ] as const) {
      await go(page, `/deliveries/${box}`, 'Deliveries')
      const rows = () => page.locator('main tbody tr').count()
      const search = async (label: string, value: string) => {
        await page.getByRole('textbox', { name: label, exact: true }).fill(value)
        await page.keyboard.press('Enter')
      }
      await search(person, 'GRACE')
      await expect.poll(rows, SOON).toBe(2)
      await search('Text', 'Red Kettle')
      await expect.poll(rows, SOON).toBe(1)
      expect(new URLSearchParams(page.url().split('?')[1]).get(column)).toBe('GRACE')
      // The control that was used keeps the focus.
      expect(await page.evaluate('document.activeElement.labels[0].firstChild.textContent')).toBe('Text')
      await page.reload()
      await expect.poll(rows, SOON).toBe(1)
      expect(await page.getByRole('textbox', { name: 'Text', exact: true }).inputValue()).toBe('Red Kettle')
      await page.goBack()
      await expect.poll(rows, SOON).toBe(2)
      await search('Text', 'nobody wrote this')
      await page.getByText(box === 'inbox' ? 'No such message here.' : 'No such reply here.').waitFor(SOON)
    }
  })

  test('words that a person types into a filter stay while the list below it is loaded again', async () => {
    const page = await open()
    await go(page, '/deliveries/outbox', 'Deliveries')
    const text = page.getByRole('textbox', { name: 'Text', exact: true })
    await text.pressSequentially('a green ')
    await world.send('a green kettle')
    await page.getByRole('row').filter({ hasText: 'a green kettle' }).waitFor(SOON)
    await text.pressSequentially('kettle')
    expect(await text.inputValue()).toBe('a green kettle')
    await page.keyboard.press('Enter')
    await expect.poll(() => page.locator('main tbody tr').count(), SOON).toBe(1)
    await page.goBack()
    await expect.poll(() => text.inputValue(), SOON).toBe('')
  })

  test.each([820, 1000, 1200])('the buttons of a row are in sight in a window of %i pixels, however long its name is', async (width) => {
    await world.gateway.call('POST', '/api/devices', { name: 'w'.repeat(100) })
    const page = await open({ viewport: { width, height: 720 } })
    await go(page, '/devices', 'Devices')
    const revoke = page.getByRole('row').filter({ hasText: 'wwwww' }).getByRole('button', { name: 'Revoke' }).first()
    await revoke.waitFor(SOON)
    const box = await revoke.boundingBox()
    expect((box?.x ?? width) + (box?.width ?? 0)).toBeLessThanOrEqual(width - 20)
    await go(page, '/features', 'Features')
    const copy = page.getByRole('button', { name: 'Copy' }).first()
    await copy.waitFor(SOON)
    const at = await copy.boundingBox()
    expect((at?.x ?? width) + (at?.width ?? 0)).toBeLessThanOrEqual(width)
  })

  test('every new control works by keyboard, and on a phone nothing is wider than the window', async () => {
    const page = await open({ viewport: { width: 380, height: 720 } })
    for (const [place, title] of [
      ['/conversations', 'Conversations'],
      ['/hardware', 'Hardware'],
      ['/tools', 'Tools and skills'],
      ['/chat', 'Chat'],
    ] as const) {
      await go(page, place, title)
      await page.waitForTimeout(300)
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'), place).toBe(true)
    }
    const attach = page.getByRole('button', { name: 'Attach files' })
    await attach.waitFor()
    const chooser = page.waitForEvent('filechooser')
    await attach.press('Enter')
    await (await chooser).setFiles([])
  })
})
