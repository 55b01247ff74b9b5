/** Repeated requests: from platforms that got no answer, and from attackers who recorded a request. See docs/contract.md#signatures. */
import { randomBytes } from 'node:crypto'
import { bizchatRequest as bizchat, testing as bizchatTesting } from '@sluice/channel-bizchat/testing'
import { CHATAPP_BODY, chatappRequest, testing as chatappTesting } from '@sluice/channel-chatapp/testing'
import { testing as mailpushTesting } from '@sluice/channel-mailpush/testing'
import { ROOMCHAT_BODY, testing as roomchatTesting } from '@sluice/channel-roomchat/testing'
import { TEXTRELAY_BODY, textrelayRequest, testing as textrelayTesting } from '@sluice/channel-textrelay/testing'
import { hmacSha256 } from '@sluice/sdk'
import { NOW_SECS, type SentRequest } from '@sluice/testkit/vector'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { always } from '../../../profiles/always.ts'
import { type ChannelDaemon, startChannelDaemon } from '../daemons/channel-daemon.ts'

const HOUR_MS = 3_600_000
const OK = { status: 200, body: '{"status":"ok"}' }
/** For things that happen in real time, whatever the clock of the test says. */
const SOON = { timeout: 20_000, interval: 5 }
const REFUSED = { status: 401, body: '{"error":"Invalid signature","code":"unauthorized"}' }

async function startFakes() {
  const nowMs = (): number => NOW_SECS * 1000
  const connected = {
    chatapp: await chatappTesting.connect(nowMs),
    textrelay: await textrelayTesting.connect(nowMs),
    bizchat: await bizchatTesting.connect(nowMs),
    roomchat: await roomchatTesting.connect(nowMs),
    mailpush: await mailpushTesting.connect(nowMs),
  }
  const { chatapp, textrelay, bizchat, roomchat, mailpush } = connected
  return {
    chatapp: chatapp.fake,
    textrelay: textrelay.fake,
    bizchat: bizchat.fake,
    roomchat: roomchat.fake,
    mailpush: mailpush.fake,
    channels: Object.fromEntries(Object.entries(connected).map(([name, { section }]) => [name, section])),
    close: () => Promise.all(Object.values(connected).map(({ fake }) => fake.close())),
  }
}

let fakes: Awaited<ReturnType<typeof startFakes>>
let daemon: ChannelDaemon

beforeEach(async () => {
  fakes = await startFakes()
  daemon = await startChannelDaemon({ features: always, channels: fakes.channels, nowSecs: NOW_SECS })
})
afterEach(async () => {
  await daemon.stop()
  await fakes.close()
})

/** Expects one stored message, whose turn ran once and whose reply was sent once. */
const expectOneTurn = async (sent: readonly unknown[]): Promise<void> => {
  expect(await daemon.kept()).toMatchObject([{ state: 'done', attempts: 1, replies: [{ state: 'sent', attempts: 1 }] }])
  expect(sent).toHaveLength(1)
}

const bodyOf = (id: string, text: string): Buffer =>
  Buffer.from(
    JSON.stringify({
      id,
      whatsappMessageId: id,
      waId: '15550002222',
      text,
      type: 'text',
      owner: false,
      eventType: 'message',
      timestamp: '1767225600',
    }),
  )
const bizchatRequest: SentRequest = bizchat(bodyOf('wamid.X', 'hello'))

describe('the same signed message runs one turn', () => {
  const cases = [
    ['chatapp', () => chatappRequest(Buffer.from(CHATAPP_BODY))],
    ['textrelay', () => textrelayRequest(Buffer.from(TEXTRELAY_BODY))],
    ['bizchat', () => bizchatRequest],
  ] as const

  test.each(cases)('%s: when repeated in sequence and 50 times at once', async (channel, request) => {
    for (let repeat = 0; repeat < 3; repeat++) expect(await daemon.send(request())).toEqual(OK)
    for (const answer of await Promise.all(Array.from({ length: 50 }, () => daemon.send(request())))) expect(answer).toEqual(OK)
    await expectOneTurn(fakes[channel].sent)
  })

  test.each(cases)('%s: when 50 first requests arrive at once', async (channel, request) => {
    for (const answer of await Promise.all(Array.from({ length: 50 }, () => daemon.send(request())))) expect(answer).toEqual(OK)
    await expectOneTurn(fakes[channel].sent)
  })

  test.each(cases)('%s: when repeated after a restart', async (channel, request) => {
    expect(await daemon.send(request())).toEqual(OK)
    await daemon.kept()
    await daemon.restart()
    expect(await daemon.send(request())).toEqual(OK)
    await expectOneTurn(fakes[channel].sent)
  })

  test('chatapp, bizchat: when repeated 71 hours later, after old rows were pruned', async () => {
    const [signed, unsigned] = [chatappRequest(Buffer.from(CHATAPP_BODY)), bizchatRequest]
    for (const request of [signed, unsigned]) expect(await daemon.send(request)).toEqual(OK)
    await daemon.kept()
    await daemon.restart(71 * HOUR_MS)
    // Long enough for the store to prune old rows.
    await daemon.clock.advance(120_000)
    for (const request of [signed, unsigned]) expect(await daemon.send(request)).toEqual(OK)
    expect(await daemon.kept()).toHaveLength(2)
    expect([fakes.chatapp.sent.length, fakes.bizchat.sent.length]).toEqual([1, 1])
  })
})

describe('textrelay: a recorded request', () => {
  const request = textrelayRequest(Buffer.from(TEXTRELAY_BODY))

  test('is a duplicate within 300 s and refused with 401 afterwards', async () => {
    expect(await daemon.send(request)).toEqual(OK)
    await daemon.clock.advance(300_000)
    expect(await daemon.send(request)).toEqual(OK)
    await daemon.clock.advance(1000)
    expect(await daemon.send(request)).toEqual(REFUSED)
    await daemon.restart()
    expect(await daemon.send(request)).toEqual(REFUSED)
    await expectOneTurn(fakes.textrelay.sent)
  })

  test('is a duplicate when the platform repeats it with a new signature', async () => {
    expect(await daemon.send(request)).toEqual(OK)
    await daemon.restart(HOUR_MS)
    const time = String(NOW_SECS + 3600)
    const signature = hmacSha256('textrelay-signing-secret-01', time, '.', TEXTRELAY_BODY).toString('hex')
    const headers = [
      ['x-webhook-timestamp', time],
      ['x-webhook-signature', signature],
    ] as const
    expect(await daemon.send({ ...request, headers })).toEqual(OK)
    await expectOneTurn(fakes.textrelay.sent)
  })
})

describe('roomchat: a nonce', () => {
  const signed = (random: string, body: string = ROOMCHAT_BODY): SentRequest => ({
    path: '/roomchat',
    headers: [
      ['X-RoomChat-Random', random],
      ['X-RoomChat-Signature', hmacSha256('roomchat-webhook-secret-01', random, body).toString('hex')],
    ],
    body,
  })
  const newRandom = () => randomBytes(48).toString('base64')
  const request = signed('Zm9vYmFyMDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6MDEyMzQ1')

  test('is refused with 401 for 1,000 s, also after a restart; then the message is a duplicate', async () => {
    expect(await daemon.send(request)).toEqual(OK)
    expect(await daemon.send(request)).toEqual(REFUSED)
    await daemon.restart()
    expect(await daemon.send(request)).toEqual(REFUSED)
    await daemon.clock.advance(999_999)
    expect(await daemon.send(request)).toEqual(REFUSED)
    await daemon.clock.advance(1)
    expect(await daemon.send(request)).toEqual(OK)
    await expectOneTurn(fakes.roomchat.sent)
  })

  test('is accepted once in 50 requests at once', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => daemon.send(request)))
    expect(answers.filter(({ status }) => status === 200)).toEqual([OK])
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(49)
    await expectOneTurn(fakes.roomchat.sent)
  })

  test('is refused for another body too', async () => {
    const random = newRandom()
    const like = ROOMCHAT_BODY.replace('"Create"', '"Like"')
    expect(await daemon.send(signed(random, like))).toEqual(OK)
    expect(await daemon.send(signed(random, like))).toEqual(REFUSED)
    expect(await daemon.send(signed(random))).toEqual(REFUSED)
    expect(await daemon.kept()).toEqual([])
  })

  test('stays valid after a request that was refused or could not be parsed', async () => {
    const random = newRandom()
    const { headers = [] } = signed(random)
    expect(await daemon.send({ ...signed(random), headers: [...headers.slice(0, 1), ['X-RoomChat-Signature', '0'.repeat(64)]] })).toEqual(
      REFUSED,
    )
    expect(await daemon.send(signed(random, '{'))).toMatchObject({ status: 400 })
    expect(await daemon.send(signed(random))).toEqual(OK)
    await expectOneTurn(fakes.roomchat.sent)
  })

  test('of its own makes no new message of a repeated one', async () => {
    expect(await daemon.send(signed(newRandom()))).toEqual(OK)
    expect(await daemon.send(signed(newRandom()))).toEqual(OK)
    await expectOneTurn(fakes.roomchat.sent)
  })

  test('whose end is moved into the body makes an invalid event', async () => {
    const { headers = [] } = request
    const [random = '', signature = ''] = headers.map(([, value]) => value)
    const moved = {
      ...request,
      headers: [
        ['X-RoomChat-Random', random.slice(0, 40)],
        ['X-RoomChat-Signature', signature],
      ] as const,
    }
    expect(await daemon.send({ ...moved, body: random.slice(40) + ROOMCHAT_BODY })).toMatchObject({ status: 400 })
    expect(await daemon.kept()).toEqual([])
  })
})

describe('mailpush: a push', () => {
  const push = (body: string): SentRequest => ({
    path: '/webhook/mailpush',
    headers: [['authorization', 'Bearer mailpush-secret-01']],
    body,
  })
  const mailArrives = async () => {
    // The first read of the mailbox sets the starting point.
    await expect.poll(() => fakes.mailpush.watches.length, SOON).toBe(1)
    fakes.mailpush.receive({ from: 'Ada <ada@example.com>', subject: 'Time', text: 'What is the time?' })
    const body = fakes.mailpush.push()
    expect(await daemon.send(push(body))).toEqual(OK)
    await expect.poll(async () => (await daemon.kept()).length, SOON).toBe(1)
    return body
  }

  test('fetches no mail twice when repeated in sequence, 20 times at once or after a restart', async () => {
    const body = await mailArrives()
    expect(await daemon.send(push(body))).toEqual(OK)
    for (const answer of await Promise.all(Array.from({ length: 20 }, () => daemon.send(push(body))))) expect(answer).toEqual(OK)
    await daemon.restart()
    expect(await daemon.send(push(body))).toEqual(OK)
    await daemon.clock.advance(1000)
    await expectOneTurn(fakes.mailpush.sent)
  })

  test('changes nothing when it is older than the last read', async () => {
    const old = fakes.mailpush.push()
    await mailArrives()
    expect(await daemon.send(push(old))).toEqual(OK)
    await daemon.clock.advance(1000)
    await expectOneTurn(fakes.mailpush.sent)
  })

  test('fetches no mail twice when the platform has lost its history', async () => {
    await mailArrives()
    fakes.mailpush.mailbox.forget()
    expect(await daemon.send(push(fakes.mailpush.push()))).toEqual(OK)
    const listings = () => fakes.mailpush.requests.filter(({ path, method }) => method === 'GET' && path.endsWith('/messages')).length
    await expect.poll(listings, SOON).toBeGreaterThan(0)
    await daemon.clock.advance(1000)
    await expectOneTurn(fakes.mailpush.sent)
  })
})
