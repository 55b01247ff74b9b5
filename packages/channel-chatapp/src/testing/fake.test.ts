import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ChatappFake, startChatappFake } from './fake.ts'

let fake: ChatappFake
beforeAll(async () => {
  fake = await startChatappFake()
})
afterAll(() => fake.close())

const good = {
  messaging_product: 'whatsapp',
  recipient_type: 'individual',
  to: '15550002222',
  type: 'text',
  text: { preview_url: false, body: 'hello' },
}
const post = async (body: unknown, { path = '/v23.0/200000000000002/messages', headers = {} } = {}) => {
  const response = await fetch(`${fake.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${fake.accessToken}`, 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, json: await response.json() }
}
const refused = (code: number) => ({ error: { type: 'OAuthException', code, message: expect.any(String), fbtrace_id: expect.any(String) } })

test('accepts and records a valid message', async () => {
  const { status, json } = await post({ ...good, context: { message_id: 'wamid.1' } })
  expect(status).toBe(200)
  expect(json).toEqual({
    messaging_product: 'whatsapp',
    contacts: [{ input: '15550002222', wa_id: '15550002222' }],
    messages: [{ id: 'wamid.FAKE00000001' }],
  })
  expect(fake.sent).toEqual([
    { id: 'wamid.FAKE00000001', to: '15550002222', recipientType: 'individual', text: 'hello', replyTo: 'wamid.1' },
  ])
})

describe('the cloud API refuses', () => {
  test.each([
    ['a body that is not JSON', '{'],
    ['an unknown member', { ...good, biz_opaque: 'x' }],
    ['an unknown member of the text', { ...good, text: { ...good.text, link: true } }],
    ['another product', { ...good, messaging_product: 'other' }],
    ['a number with a plus sign', { ...good, to: '+15550002222' }],
    ['no recipient', { ...good, to: undefined }],
    ['two recipients', { ...good, recipient: 'US.90000000000001' }],
    ['a phone number as a scoped id', { ...good, to: undefined, recipient: '15550002222' }],
    ['a phone number as a group id', { ...good, recipient_type: 'group' }],
    ['an empty text', { ...good, text: { preview_url: false, body: '' } }],
    ['a text that is too long', { ...good, text: { preview_url: false, body: 'a'.repeat(4097) } }],
    ['an empty id of the quoted message', { ...good, context: { message_id: '' } }],
  ])('%s', async (_what, body) => {
    const before = fake.sent.length
    expect(await post(body)).toMatchObject({ status: 400, json: refused(100) })
    expect(fake.sent).toHaveLength(before)
  })

  test('another phone number id, version or content type', async () => {
    expect(await post(good, { path: '/v23.0/200000000000009/messages' })).toMatchObject({ status: 400, json: refused(100) })
    expect(await post(good, { path: '/v1.0/200000000000002/messages' })).toMatchObject({ status: 400, json: refused(2500) })
    expect(await post(good, { headers: { 'content-type': 'text/plain' } })).toMatchObject({ status: 400, json: refused(100) })
  })

  test('a missing and a wrong token', async () => {
    expect(await post(good, { headers: { authorization: 'Basic x' } })).toMatchObject({ status: 401, json: refused(104) })
    expect(await post(good, { headers: { authorization: 'Bearer wrong' } })).toMatchObject({ status: 401, json: refused(190) })
  })
})
