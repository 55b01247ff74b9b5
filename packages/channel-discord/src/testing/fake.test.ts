/** The fake refuses the requests that the platform refuses. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { DISCORD_CHANNEL, DISCORD_TOKEN, type DiscordFake, startDiscordFake } from './fake.ts'

let fake: DiscordFake
beforeEach(async () => {
  fake = await startDiscordFake()
})
afterEach(() => fake.close())

const identify = { token: DISCORD_TOKEN, intents: 37_377, properties: { os: 'linux' } }

/** Sends the payloads after the hello. Returns the close code of the gateway, or 9 if it reports an invalid session. */
async function closeCode(sent: readonly unknown[], query = 'v=10&encoding=json'): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  const socket = new WebSocket(`${fake.url.replace('http', 'ws')}?${query}`)
  socket.on('close', resolve)
  socket.on('message', (data) => {
    const { op } = JSON.parse(data.toString())
    if (op === 10) for (const payload of sent) socket.send(typeof payload === 'string' ? payload : JSON.stringify(payload))
    else if (op === 9) resolve(op)
  })
  try {
    return await promise
  } finally {
    socket.terminate()
  }
}

describe('the gateway', () => {
  test.each<[why: string, code: number, sent: readonly unknown[], query?: string]>([
    ['a frame that is not JSON', 4002, ['{']],
    ['an unknown operation', 4001, [{ op: 99, d: null }]],
    ['an operation before identify', 4003, [{ op: 3, d: {} }]],
    ['a wrong token', 4004, [{ op: 2, d: { ...identify, token: 'x' } }]],
    ['a second session', 4005, [identify, identify].map((d) => ({ op: 2, d }))],
    ['an unknown intent', 4013, [{ op: 2, d: { ...identify, intents: 2 ** 30 } }]],
    ['an intent that is not allowed', 4014, [{ op: 2, d: { ...identify, intents: 37_377 | 2 } }]],
    ['another version', 4012, [], 'v=6&encoding=json'],
    ['another encoding', 4002, [], 'v=10&encoding=etf'],
    ['an unknown session', 9, [{ op: 6, d: { token: DISCORD_TOKEN, session_id: 'x', seq: 1 } }]],
  ])('refuses %s with %i', async (_why, code, sent, query) => {
    expect(await closeCode(sent, query)).toBe(code)
  })
})

describe('the REST interface', () => {
  const headers = { authorization: `Bot ${DISCORD_TOKEN}`, 'user-agent': 'DiscordBot (https://example.com, 1)' }
  const post = async (body: object, changes: Record<string, string> = {}) => {
    const answer = await fetch(`${fake.apiUrl}/v10/channels/${DISCORD_CHANNEL}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers, ...changes },
      body: JSON.stringify(body),
    })
    return [answer.status, ((await answer.json()) as { code?: number }).code]
  }
  const row = (...components: object[]) => ({ content: 'x', components: [{ type: 1, components }] })
  const button = { type: 2, style: 3, label: 'x', custom_id: 'x' }

  test.each<[why: string, answer: readonly unknown[], body: object, headers?: Record<string, string>]>([
    ['a wrong token', [401, 0], { content: 'x' }, { authorization: 'Bot x' }],
    ['a client without the required user agent', [403, 40333], { content: 'x' }, { 'user-agent': 'node' }],
    ['an empty message', [400, 50006], { content: ' ' }],
    ['a message over the length limit', [400, 50035], { content: 'x'.repeat(2001) }],
    ['a long nonce', [400, 50035], { content: 'x', nonce: 'x'.repeat(26) }],
    ['a quote of an unknown message', [400, 50035], { content: 'x', message_reference: { message_id: '1' } }],
    ['a button outside a row', [400, 50035], { content: 'x', components: [button] }],
    ['two buttons with one id', [400, 50035], row(button, button)],
    ['six buttons in a row', [400, 50035], row(...Array.from({ length: 6 }, (_, id) => ({ ...button, custom_id: String(id) })))],
    ['a button without a label', [400, 50035], row({ ...button, label: '' })],
  ])('refuses %s', async (_why, answer, body, changes) => {
    expect(await post(body, changes)).toEqual(answer)
    expect(fake.sent).toEqual([])
  })

  test('mentions notify unless allowed_mentions forbids it', async () => {
    await post({ content: '@everyone', allowed_mentions: { parse: [] } })
    expect(fake.pings).toEqual([])
    await post({ content: '@everyone' })
    expect(fake.pings).toEqual([DISCORD_CHANNEL])
  })
})
