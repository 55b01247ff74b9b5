import { Secret } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { parseMessages } from './parse.ts'
import { serverOf } from './server.ts'
import { sampleRequest } from './webhook.ts'

const sample = { sender: 'alice', text: 'hi', id: '7', atMs: 1_767_225_600_000 }
const server = (secret?: string) =>
  serverOf(
    {
      enabled: true,
      base_url: 'https://chat.example',
      app_token: new Secret('t'),
      bot_name: '',
      allowed_users: [],
      ...(secret && { webhook_secret: new Secret(secret) }),
    },
    fetch,
  )

test.each([undefined, 'secret'])('a sample names its room, or says that it cannot be answered (secret: %s)', (secret) => {
  const roomOf = (to?: string) => {
    const { body, unanswerable } = sampleRequest({ ...sample, ...(to !== undefined && { to }) }, server(secret))
    const [message] = parseMessages(new TextEncoder().encode(body), 'a', '')
    return [message?.to.to, unanswerable]
  }
  expect(roomOf('r00m')).toEqual(['r00m', undefined])
  expect(roomOf()).toEqual(['sample-room', true])
})

test('a sample for a room that cannot exist is rejected', () => {
  expect(() => sampleRequest({ ...sample, to: 'https://chat.example/call/r00m' }, server())).toThrow(
    expect.objectContaining({ code: 'invalid_request' }),
  )
})
