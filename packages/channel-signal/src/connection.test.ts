/** The channel against the fake of signal-cli. */
import { AppError, type Channel, type Inbound } from '@sluice/sdk'
import { type TestClock, testClock } from '@sluice/testkit/clock'
import { testHost } from '@sluice/testkit/host'
import { type Listening, startListening } from '@sluice/testkit/listening'
import * as v from 'valibot'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { signalSection } from './config.ts'
import feature from './index.ts'
import { SIGNAL_ACCOUNT, type SignalFake, testing } from './testing/index.ts'
import { connect } from './testing/section.ts'

const { signal } = new AbortController()
const ADA = '+15550003333'
let fake: SignalFake
let channel: Channel
let clock: TestClock
let listening: Listening
let received: Inbound[]
/** The error of each delivery; undefined while messages can be stored. */
let storeError: AppError | undefined
let refused: number

beforeEach(async () => {
  clock = testClock(Date.UTC(2026, 0, 1))
  const connected = await testing.connect(clock.nowMs)
  fake = connected.fake
  received = []
  storeError = undefined
  refused = 0
  listening = listenTo(connected.section)
  await expect.poll(() => listening.health.state).toBe('ok')
})
afterEach(async () => {
  await listening.stop()
  await fake.close()
})

function listenTo(section: object): Listening {
  const host = testHost({ fetch, clock })
  const [built] = feature.build(host, v.parse(signalSection.schema, section)).channels ?? []
  if (!built) throw new Error('The section of the fake builds no channel.')
  channel = built
  return startListening(channel, host, async (inbound) => {
    if (storeError) {
      refused += 1
      throw storeError
    }
    received.push(inbound)
  })
}

const texts = (): string[] => received.map(({ text }) => text)

test('delivers messages in order, also those with characters that two packets share', async () => {
  for (const text of ['one', 'grüße 🌊'.repeat(20_000), 'three']) fake.say({ text })
  await expect.poll(() => received.length).toBe(3)
  expect(texts().map((text) => text.length)).toEqual([3, 160_000, 5])
  expect(texts()[1]).not.toContain('\uFFFD')
})

test('keeps a message until it is stored, and reads nothing further meanwhile', async () => {
  storeError = new AppError('unavailable', 'the disk is full')
  fake.say({ text: 'one' })
  fake.say({ text: 'two' })
  await expect.poll(() => refused).toBeGreaterThan(0)
  expect(received).toEqual([])
  storeError = undefined
  await expect
    .poll(async () => {
      await clock.advance(1000)
      return texts()
    })
    .toEqual(['one', 'two'])
})

test('messages that signal-cli wrote to a connection that carried nothing arrive over the next one, once and in order', async () => {
  fake.say({ text: 'one' })
  await expect.poll(texts).toEqual(['one'])
  fake.mute()
  fake.say({ text: 'two' })
  fake.say({ text: 'three' })
  fake.cut()
  await expect
    .poll(async () => {
      await clock.advance(1000)
      return texts()
    })
    .toEqual(['one', 'two', 'three'])
  expect(listening.gaps).toEqual([])
})

test('an older signal-cli, which repeats nothing, makes a broken connection a gap', async () => {
  await listening.stop()
  await fake.close()
  const older = await connect(clock.nowMs, { forgets: true })
  fake = older.fake
  listening = listenTo(older.section)
  await expect.poll(() => listening.health.state).toBe('ok')
  fake.say({ text: 'one' })
  await expect.poll(texts).toEqual(['one'])
  const sinceMs = clock.nowMs()
  fake.cut()
  await expect
    .poll(async () => {
      await clock.advance(1000)
      return listening.gaps
    })
    .toEqual([{ sinceMs, why: 'this version of signal-cli does not repeat what it wrote to a broken connection' }])
})

test('an account that signal-cli does not have is reported, and tried rarely', async () => {
  fake.forget()
  fake.cut()
  await expect
    .poll(async () => {
      await clock.advance(1000)
      return listening.health.detail
    })
    .toContain(`signal-cli has no account ${SIGNAL_ACCOUNT}`)
})

describe('sending', () => {
  test('quotes the message that it answers', async () => {
    const { id } = await channel.send({ to: ADA, replyTo: 'uuid-1/4000' }, { text: 'hello', clientId: 'c-1' }, signal)
    expect(id).toMatch(/^\+15550001111\/\d+$/)
    expect(fake.sent).toEqual([
      { account: SIGNAL_ACCOUNT, recipient: [ADA], message: 'hello', quoteAuthor: 'uuid-1', quoteTimestamp: 4000 },
    ])
  })

  test('shows its styles by ranges in UTF-16 units', async () => {
    const styles = [
      { kind: 'bold', from: 3, to: 7 },
      { kind: 'code', from: 8, to: 12 },
    ] as const
    await channel.send({ to: ADA }, { text: '😀 bold code', styles, clientId: 'c-1' }, signal)
    expect(fake.sent).toMatchObject([{ message: '😀 bold code', textStyle: ['3:4:BOLD', '8:4:MONOSPACE'] }])
  })

  test('goes to a group, with files', async () => {
    const attachments = [{ kind: 'file', name: 'a b.txt', mime: 'text/plain', source: { bytes: Buffer.from('hi') } }] as const
    await channel.send({ to: 'group:Z3JvdXA=' }, { text: '', attachments, clientId: 'c-1' }, signal)
    expect(fake.sent).toMatchObject([{ groupId: 'Z3JvdXA=', attachments: ['data:text/plain;filename=a+b.txt;base64,aGk='] }])
  })

  test.each([
    ['UNREGISTERED_FAILURE', 'invalid_request'],
    ['IDENTITY_FAILURE', 'forbidden'],
    ['RATE_LIMIT_FAILURE', 'rate_limited'],
    ['NETWORK_FAILURE', 'upstream'],
  ])('%s is %s', async (outcome, code) => {
    fake.outcome = outcome
    await expect(channel.send({ to: ADA }, { text: 'hello', clientId: 'c-1' }, signal)).rejects.toMatchObject({ code })
  })

  test.each([
    [-1, 'invalid_request'],
    [-3, 'upstream'],
    [-4, 'forbidden'],
    [-5, 'rate_limited'],
    [-32_602, 'invalid_request'],
  ])('the error %i of signal-cli is %s', async (code, expected) => {
    fake.fail({ fault: 'status', status: 200, body: { jsonrpc: '2.0', id: '1', error: { code, message: 'no' } } })
    await expect(channel.send({ to: ADA }, { text: 'hello', clientId: 'c-1' }, signal)).rejects.toMatchObject({ code: expected })
  })

  test('shows that a reply is being written', async () => {
    await channel.typing?.({ to: ADA }, signal)
    expect(fake.typing).toEqual([{ account: SIGNAL_ACCOUNT, recipient: [ADA] }])
  })
})

test('fetches the bytes of an attachment, up to a size', async () => {
  fake.files.set('a.png', Buffer.from('meow'))
  const attachment = { kind: 'image', name: 'cat.png', mime: 'image/png', source: { id: 'a.png' } } as const
  expect(await channel.fetchMedia?.(attachment, { bytesMax: 4, signal })).toEqual({ bytes: Buffer.from('meow'), mime: 'image/png' })
  await expect(channel.fetchMedia?.(attachment, { bytesMax: 3, signal })).rejects.toMatchObject({ code: 'too_large' })
})
