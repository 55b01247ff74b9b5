/** Sends the reference requests of the platforms to a running daemon. */
import { sha256Hex } from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { type ChannelDaemon, type ChannelSections, startChannelDaemon } from '../daemons/channel-daemon.ts'
import { type FakeProviders, startFakeProviders } from '../daemons/fake-providers.ts'
import * as chatapp from './chatapp.ts'
import * as mailpush from './mailpush.ts'
import * as roomchat from './roomchat.ts'
import * as textrelay from './textrelay.ts'
import { NOW_SECS, type Vector } from './vector.ts'

let fakes: FakeProviders
let daemon: ChannelDaemon | undefined

beforeEach(async () => {
  fakes = await startFakeProviders(() => NOW_SECS * 1000)
})
afterEach(async () => {
  await daemon?.stop()
  daemon = undefined
  await fakes.close()
})

/** Starts a daemon with only this channel. */
async function start(channel: string, nowSecs = NOW_SECS, changed: ChannelSections = {}): Promise<ChannelDaemon> {
  const channels = { [channel]: { ...fakes.channels[channel], ...changed[channel] } }
  daemon = await startChannelDaemon({ features: always, channels, nowSecs })
  return daemon
}

test.each([
  [chatapp.BODY, 416, '6678f1a899c3840a'],
  [chatapp.ESCAPED_BODY, 240, '8c952c1403ca9e83'],
  [textrelay.BODY, 331, '0fa2e3fe872a63ff'],
  [textrelay.OWN_BODY, 167, '31fb7739218d950d'],
  [roomchat.BODY, 269, '8fbd600e06013999'],
  [mailpush.BODY, 206, ''],
  [mailpush.OTHER_BODY, 190, ''],
])('%.20s… has its exact bytes', (body, bytes, digest) => {
  expect(Buffer.byteLength(body)).toBe(bytes)
  expect(sha256Hex(body).slice(0, digest.length)).toBe(digest)
})

describe.each([
  ['chatapp', chatapp.chatappVectors],
  ['textrelay', textrelay.textrelayVectors],
  ['roomchat', roomchat.roomchatVectors],
  ['mailpush', mailpush.mailpushVectors],
] as const)('reference requests of %s', (channel, vectors) => {
  test.each(vectors)('$id: $what', async ({ nowSecs, channels, requests, atOnce, answers, turns = [] }: Vector) => {
    const { send, kept } = await start(channel, nowSecs, channels)
    const all = requests(fakes)
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
        channel,
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
  test.each([
    ['chatapp', (body: Uint8Array) => chatapp.signedRequest(body)],
    ['textrelay', (body: Uint8Array) => textrelay.signedRequest(body)],
    ['roomchat', (body: Uint8Array) => roomchat.signedRequest(body)],
  ])('%s: a signed body that is not UTF-8 is 400 and runs nothing', async (channel, signedRequest) => {
    const { send, kept } = await start(channel)
    for (const bytes of [
      [0xff, 0xfe, 0x00],
      [0x7b, 0x22, 0xc3, 0x28, 0x22, 0x7d],
      [0x22, 0xed, 0xa0, 0x80, 0x22],
    ]) {
      expect(await send(signedRequest(Uint8Array.from(bytes)))).toMatchObject({ status: 400 })
    }
    expect(await kept()).toEqual([])
  })
})
