import { createPublicKey, verify } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type MailpushFake, startMailpushFake } from './fake.ts'

let fake: MailpushFake
beforeEach(async () => {
  fake = await startMailpushFake({ pageSize: 2 })
})
afterEach(() => fake.close())

const ask = async (path: string, { token = 'oauth-token-01', ...init }: RequestInit & { token?: string } = {}) => {
  const response = await fetch(`${fake.url}/gmail/v1/users/me${path}`, {
    ...init,
    headers: { authorization: `Bearer ${token}`, ...init.headers },
  })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}
const post = (path: string, body: unknown) =>
  ask(path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
const send = (mail: string, threadId?: string) => post('/messages/send', { raw: Buffer.from(mail).toString('base64url'), threadId })
const grant = async (form: Record<string, string>) => {
  const response = await fetch(`${fake.url}/token`, { method: 'POST', body: new URLSearchParams(form) })
  return { status: response.status, json: (await response.json()) as Record<string, string> }
}

const MAIL = [
  'To: ada@example.com',
  'Subject: x',
  'Date: Thu, 01 Jan 2026 00:00:00 +0000',
  'Message-ID: <1@x>',
  'Content-Transfer-Encoding: base64',
  '',
  'aGk=',
].join('\r\n')

test('accepts only valid access tokens and refreshes them', async () => {
  expect((await ask('/profile')).json.emailAddress).toBe('bot@example.com')
  expect((await ask('/profile', { token: 'other' })).status).toBe(401)
  fake.expireTokens()
  expect((await ask('/profile')).status).toBe(401)
  const form = { grant_type: 'refresh_token', ...fake.client }
  const { json } = await grant(form)
  expect((await ask('/profile', { token: json.access_token ?? '' })).status).toBe(200)
  for (const wrong of [{ grant_type: 'password' }, { client_secret: 'x' }, { refresh_token: 'x' }]) {
    expect((await grant({ ...form, ...wrong })).status).toBeGreaterThanOrEqual(400)
  }
})

test('pages through the history as of one moment, until it expires', async () => {
  const since = fake.mailbox.now()
  const mails = [1, 2, 3].map((count) => fake.receive({ from: `a${count}@example.com`, text: 'x' }))
  const first = await ask(`/history?startHistoryId=${since}`)
  expect(first.json).toMatchObject({ historyId: String(fake.mailbox.now()), history: [{}, {}], nextPageToken: expect.any(String) })
  fake.receive({ from: 'later@example.com', text: 'x' })
  const second = await ask(`/history?startHistoryId=${since}&pageToken=${first.json.nextPageToken}`)
  expect(second.json).toMatchObject({ history: [{ messagesAdded: [{ message: { id: mails[2]?.id } }] }] })
  expect(second.json.nextPageToken).toBeUndefined()
  expect((await ask(`/history?startHistoryId=${fake.mailbox.now()}`)).json.history).toBeUndefined()
  expect((await ask('/history')).status).toBe(400)
  expect((await ask(`/history?startHistoryId=${since}&pageToken=x`)).status).toBe(400)
  fake.mailbox.forget()
  expect((await ask(`/history?startHistoryId=${since}`)).status).toBe(404)
})

test('never reuses the id of a deleted mail', () => {
  const first = fake.receive({ from: 'ada@example.com', text: 'x' })
  fake.mailbox.remove(first.id)
  expect(fake.receive({ from: 'ada@example.com', text: 'y' }).id).not.toBe(first.id)
})

test('a watch request needs a valid topic', async () => {
  expect((await post('/watch', { topicName: 'projects/p/topics/t', labelIds: ['INBOX'] })).json.historyId).toBe(String(fake.mailbox.now()))
  for (const body of [{}, { topicName: 't' }, { topicName: 'projects/p/topics/t', labelIds: 'INBOX' }]) {
    expect((await post('/watch', body)).status).toBe(400)
  }
})

describe('sending a mail', () => {
  test('stores the mail and lists it in the history as our own', async () => {
    const { json } = await send(MAIL)
    expect(fake.sent).toMatchObject([{ text: 'hi' }])
    expect((await ask(`/messages/${json.id}`)).json.labelIds).toEqual(['SENT'])
  })

  test.each<[what: string, mail: string]>([
    ['no To', MAIL.replace(/^To.*\r\n/, '')],
    ['two recipients', MAIL.replace('ada@example.com', 'ada@example.com, bob@example.com')],
    ['bare line ends', MAIL.replaceAll('\r\n', '\n')],
    ['a line over the length limit', MAIL.replace('Subject: x', `Subject: ${'x'.repeat(1000)}`)],
    ['a repeated header', MAIL.replace('Subject: x', 'Subject: x\r\nSubject: y')],
    ['no date', MAIL.replace(/Date.*\r\n/, '')],
    ['no body', 'To: ada@example.com'],
  ])('refuses a mail with %s', async (_, mail) => {
    expect((await send(mail)).status).toBe(400)
    expect(fake.sent).toEqual([])
  })

  test('refuses an unknown thread', async () => {
    expect((await send(MAIL, 'gone')).status).toBe(404)
  })
})

test('the key server publishes the key that signs push tokens', async () => {
  const [header = '', payload = '', signature = ''] = fake.keys.mint({ aud: 'https://gw', email: 'a@b.c' }, 0).split('.')
  const { keys } = (await (await fetch(`${fake.url}/oauth2/v3/certs`)).json()) as { keys: { kid: string }[] }
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString())
  const key = createPublicKey({ key: { ...keys.find((one) => one.kid === kid) }, format: 'jwk' })
  expect(verify('sha256', Buffer.from(`${header}.${payload}`), key, Buffer.from(signature, 'base64url'))).toBe(true)
})
