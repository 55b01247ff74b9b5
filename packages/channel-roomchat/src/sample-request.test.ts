import { Secret } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { parseMessages } from './parse-messages.ts'
import { sampleRequest } from './sample-request.ts'
import { serverOf } from './server.ts'

const sample = { sender: 'alice', text: 'hi', id: '7', atMs: 1_767_225_600_000 }
const server = (secret?: string) =>
  serverOf({
    enabled: true,
    base_url: 'https://chat.example',
    app_token: new Secret('t'),
    bot_name: '',
    allowed_users: [],
    ...(secret && { webhook_secret: new Secret(secret) }),
  })

test.each([undefined, 'secret'])('a sample is in the room it is given, or says that no answer can arrive (secret: %s)', (secret) => {
  const roomOf = (to?: string) => {
    const { body, unanswerable } = sampleRequest({ ...sample, ...(to !== undefined && { to }) }, server(secret))
    const [message] = parseMessages(new TextEncoder().encode(body), { account: 'a', botName: '' })
    return [message?.to.to, unanswerable]
  }
  expect(roomOf('r00m')).toEqual(['r00m', undefined])
  expect(roomOf()).toEqual(['sample-room', true])
})

test('a sample for what can be no room is refused', () => {
  expect(() => sampleRequest({ ...sample, to: 'https://chat.example/call/r00m' }, server())).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})
