import { expect, test } from 'vitest'
import { createWebhook } from './webhook.ts'

const sample = { sender: 'alice', text: 'hi', id: '7', atMs: 1_767_225_600_000 }
const webhookWith = (secret: string) => createWebhook({ secret, backends: ['https://chat.example'], account: 'chat.example', botName: '' })

test.each(['', 'secret'])('a sample names its room, or says that it cannot be answered (secret: %j)', async (secret) => {
  const webhook = webhookWith(secret)
  const roomOf = async (to?: string) => {
    const { body, headers, unanswerable } = webhook.sample({ ...sample, ...(to !== undefined && { to }) })
    const raw = { headers, url: new URL('http://localhost/roomchat'), body: new TextEncoder().encode(body), receivedAtMs: 0 }
    const [message] = await webhook.parse(raw)
    return [message?.to.to, unanswerable]
  }
  expect(await roomOf('r00m')).toEqual(['r00m', undefined])
  expect(await roomOf()).toEqual(['sample-room', true])
})

test('a sample for a room that cannot exist is rejected', () => {
  expect(() => webhookWith('').sample({ ...sample, to: 'https://chat.example/call/r00m' })).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})
