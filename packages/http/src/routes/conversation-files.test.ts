import { expect, test } from 'vitest'
import { contentDisposition } from '../answers/content-disposition.ts'
import { testGateways } from '../testing.ts'

const gateways = testGateways()
const PICTURE = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>')

/** A client whose agent returns the files that `reply` names, and an operator. */
async function arrange(reply = 'See [IMAGE: charts/über.svg] and [FILE:https://example.org/x] and notes.txt') {
  const made = gateways({ reply: () => reply })
  const operator = await made.pair('o')
  const client = await made.pair('c', null, 'client')
  const other = await made.pair('d', null, 'client')
  const workspace = made.runtime.workspaceOf('main')
  for (const path of ['charts/über.svg', 'notes.txt']) await workspace?.write(path, PICTURE)
  const post = (path: string, body: object) =>
    made.request(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.token}`, 'content-type': 'application/json', 'x-session-id': 'talk' },
      body: JSON.stringify(body),
    })
  const file = (path: string, token = client.token, session = 'talk') =>
    made.request(`/api/sessions/${encodeURIComponent(session)}/file?path=${encodeURIComponent(path)}`, {
      headers: { authorization: `Bearer ${token}` },
    })
  const audited = async () => (await made.store.sops.audit({ limit: 100 })).map(({ kind, by }) => ({ kind, by }))
  return { ...made, operator, client, other, post, file, audited }
}

test('a file that was attached, and one that the agent returned, are downloads that no browser shows', async () => {
  const { post, file } = await arrange()
  const uploaded = await post('/api/attachments', { name: 'plan".svg', mime: 'image/svg+xml', data: PICTURE.toString('base64') })
  const { text } = (await uploaded.json()) as { text: string }
  await post('/webhook', { message: `Look at this\n${text}` })
  const sent = await file(text.split('] ')[1] ?? '')
  expect(sent.status).toBe(200)
  expect(Buffer.from(await sent.arrayBuffer())).toEqual(PICTURE)
  expect(Object.fromEntries(sent.headers)).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="plan_.svg"; filename*=UTF-8''plan_.svg`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': expect.stringContaining("default-src 'none'"),
    'cache-control': 'no-store',
  })
  const returned = await file('charts/über.svg')
  expect([returned.status, returned.headers.get('content-disposition')]).toEqual([
    200,
    `attachment; filename="_ber.svg"; filename*=UTF-8''%C3%BCber.svg`,
  ])
})

test('a file that no message names as one is not found, whatever the workspace has', async () => {
  const { post, file } = await arrange()
  await post('/webhook', { message: '[Document: x] notes.txt\n[FILE:notes.txt]' })
  for (const path of ['notes.txt', 'https://example.org/x', '../config.toml', 'charts', '/etc/passwd'])
    expect((await file(path)).status, path).toBe(404)
  expect((await file('charts/über.svg', undefined, 'elsewhere')).status).toBe(404)
})

test('a file whose path leads out of the workspace is refused although the agent names it', async () => {
  const { post, file } = await arrange('[FILE:../secret.key]')
  await post('/webhook', { message: 'give it to me' })
  expect((await file('../secret.key')).status).toBe(403)
})

test('a file that its turn did not attach is not found', async () => {
  const { post, file, runtime } = await arrange('[FILE:refused.txt] and [FILE:notes.txt]')
  await runtime.workspaceOf('main')?.write('refused.txt', PICTURE)
  await post('/webhook', { message: 'both' })
  expect([(await file('refused.txt')).status, (await file('notes.txt')).status]).toEqual([404, 200])
})

test('a message of an earlier release attaches what a call of its turn names', async () => {
  const { client, store, file, clock } = await arrange()
  const text = (role: 'user' | 'assistant', said: string) => ({ role, content: [{ type: 'text' as const, text: said }] })
  const called = {
    role: 'assistant' as const,
    content: [{ type: 'tool-call' as const, toolCallId: '1', toolName: 'file_read', input: { path: 'notes.txt' } }],
  }
  const end = (id: string, messages: Parameters<typeof store.turns.finish>[0]['messages']) =>
    store.turns.finish({
      ...{ id, agent: 'main', sessionId: `${client.device}/talk`, source: 'webhook', input: 'x', response: 'y', model: 'm', error: null },
      ...{ status: 'done', inputTokens: 0, outputTokens: 0, costUsd: 0, attempts: 1, createdAtMs: clock.nowMs(), endedAtMs: clock.nowMs() },
      messages,
    })
  await end('1', [text('user', 'a'), called, text('assistant', '[FILE:charts/über.svg]')])
  await end('2', [text('user', 'b'), text('assistant', '[FILE:notes.txt]')])
  expect([(await file('notes.txt')).status, (await file('charts/über.svg')).status]).toEqual([404, 404])
  const refused = {
    role: 'tool' as const,
    content: [
      {
        ...{ type: 'tool-result' as const, toolCallId: '1', toolName: 'file_read' },
        output: { type: 'text' as const, value: 'Not run: the policy forbids notes.txt' },
      },
    ],
  }
  const beside = { ...called, content: [{ type: 'text' as const, text: '[FILE:notes.txt]' }, ...called.content] }
  await end('beside', [text('user', 'b2'), beside, refused, text('assistant', 'done')])
  expect((await file('notes.txt')).status, 'text beside a call is no answer').toBe(404)
  await end('3', [text('user', 'c'), called, text('assistant', '[FILE:notes.txt]')])
  expect((await file('notes.txt')).status).toBe(200)
})

test('another client gets nothing, and an operator is recorded in the audit log', async () => {
  const { post, file, client, other, operator, audited, request } = await arrange()
  await post('/webhook', { message: 'hello' })
  const whole = `${client.device}/talk`
  for (const session of ['talk', whole]) expect((await file('charts/über.svg', other.token, session)).status).toBeGreaterThanOrEqual(400)
  expect((await request('/api/sessions/talk/file?path=x')).status).toBe(401)
  expect(await audited()).toEqual([])
  expect((await file('charts/über.svg', operator.token, whole)).status).toBe(200)
  expect(await audited()).toEqual([{ kind: 'conversation_read', by: `device:${operator.device}` }])
})

test('a name becomes no other header and no path', () => {
  expect(contentDisposition('a"b\r\nx: y/../c\\d\u202e.png')).toBe(
    `attachment; filename="a_b_x__y_.._c_d_.png"; filename*=UTF-8''a_b_x_%20y_.._c_d_.png`,
  )
  expect(contentDisposition('..')).toBe(`attachment; filename="file"; filename*=UTF-8''file`)
  expect(contentDisposition('\ud800')).toContain("filename*=UTF-8''%EF%BF%BD")
})

test('a client that names the file of another client in its own session gets nothing', async () => {
  const { post, request, other } = await arrange()
  const { text } = (await (await post('/api/attachments', { name: 'pay.txt', data: PICTURE.toString('base64') })).json()) as {
    text: string
  }
  const path = text.split('] ')[1] ?? ''
  const headers = { authorization: `Bearer ${other.token}`, 'content-type': 'application/json', 'x-session-id': 'talk' }
  for (const message of [text, `[FILE:${path}]`]) await request('/webhook', { method: 'POST', headers, body: JSON.stringify({ message }) })
  const answer = await request(`/api/sessions/talk/file?path=${encodeURIComponent(path)}`, { headers })
  expect([answer.status, (await answer.text()).includes('svg')]).toEqual([403, false])
})
