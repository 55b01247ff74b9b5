/** Sends the reference requests of the platforms to a running daemon. */

import offline from '@sluice/provider-offline'
import { sha256Hex } from '@sluice/sdk'
import type { Connected } from '@sluice/testkit/channel-testing'
import { NOW_SECS, type Vector } from '@sluice/testkit/vector'
import { afterEach, describe, expect, test } from 'vitest'
import { type FoundChannel, WEBHOOKS } from '../channels.ts'
import { type ChannelDaemon, startChannelDaemon } from '../daemons/channel-daemon.ts'

let connected: Connected | undefined
let daemon: ChannelDaemon | undefined

afterEach(async () => {
  await daemon?.stop()
  await connected?.fake.close()
  daemon = connected = undefined
})

/** Starts a daemon with only this channel. */
async function start(
  { name, feature, testing }: FoundChannel,
  { nowSecs = NOW_SECS, section = {} }: Pick<Vector, 'nowSecs' | 'section'> = {},
) {
  connected = await testing.connect(() => NOW_SECS * 1000)
  daemon = await startChannelDaemon({ features: [offline, feature], channels: { [name]: { ...connected.section, ...section } }, nowSecs })
  return { ...daemon, fake: connected.fake }
}

test.each(WEBHOOKS.flatMap(({ webhook }) => webhook.bodies ?? []))('$body has its exact bytes', ({ body, bytes, sha256 = '' }) => {
  expect(Buffer.byteLength(body)).toBe(bytes)
  expect(sha256Hex(body).slice(0, sha256.length)).toBe(sha256)
})

describe.each(WEBHOOKS)('reference requests of $name', (channel) => {
  test.each(channel.webhook.vectors)('$id: $what', async (vector) => {
    const { requests, atOnce, answers, turns = [] } = vector
    const { fake, send, kept } = await start(channel, vector)
    const all = requests(fake)
    const answered: Awaited<ReturnType<typeof send>>[] = []
    if (atOnce) answered.push(...(await Promise.all(all.map(send))))
    else for (const request of all) answered.push(await send(request))
    expect(answered).toEqual(
      answers.map((answer) => {
        const [status, body] = typeof answer === 'number' ? [answer] : answer
        return { status, body: expect.stringContaining(body ?? '') }
      }),
    )
    expect(await kept()).toMatchObject(
      turns.map(({ sender, text, to, messageId }) => ({
        channel: channel.name,
        state: 'done',
        sender,
        ...(messageId !== undefined && { messageId }),
        message: { text, ...(to !== undefined && { to: { to } }) },
        replies: [{ state: 'sent' }],
      })),
    )
  })
})

describe('the proof covers bytes', () => {
  const signing = WEBHOOKS.flatMap((channel) => {
    const { signedRequest } = channel.webhook
    return signedRequest ? [{ ...channel, signedRequest }] : []
  })

  test.each(signing)('$name: a signed body that is not UTF-8 is 400 and runs nothing', async (channel) => {
    const { send, kept } = await start(channel)
    for (const bytes of [
      [0xff, 0xfe, 0x00],
      [0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
    ]) {
      expect(await send(channel.signedRequest(Uint8Array.from(bytes)))).toMatchObject({ status: 400 })
    }
    expect(await kept()).toEqual([])
  })
})
