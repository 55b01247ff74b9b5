/** The notices to senders and operators about a message without an answer. */
import { AppError, type Channel, GATEWAY_TEXTS, type Inbound } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { advanceUntil, bench, clock, message, settle, setUpDeliveries, states, until } from '../testing/delivery-bench.ts'

setUpDeliveries()

const UNANSWERED = GATEWAY_TEXTS.unanswered.text
const HOUR_MS = 3_600_000
const refused = new AppError('upstream', 'model:m refused our credentials (HTTP 401)', { refusedFor: 'credentials' })
/** Refuses each message whose id begins with `bad`. The text of an unverified sender is framed. */
const turn = ({ text }: { readonly text: string }): string => {
  if (text.includes('text of bad')) throw refused
  return 'fine'
}
const textsOf = ({ sent }: { readonly sent: readonly { readonly text: string }[] }) => sent.map(({ text }) => text)

describe('a message that the model refuses', () => {
  test('ends after one attempt with one notice, and the message behind it runs at once', async () => {
    const made = await bench({ turn })
    await made.receive(message('bad'), message('m2'))
    await until(() => made.sent.length === 2)
    expect(textsOf(made)).toEqual([UNANSWERED, 'fine'])
    expect(made.sent[0]?.to).toMatchObject({ to: '+15550002222', replyTo: 'bad' })
    expect(made.turns).toHaveLength(2)
    const [dead] = await made.store.inbox.list({ limit: 1, state: 'dead' })
    expect(dead).toMatchObject({ messageId: 'bad', attempts: 1, error: 'refused: model:m refused our credentials (HTTP 401)' })
  })

  test('is sent once an hour in a conversation, and in each conversation', async () => {
    const made = await bench({ turn })
    await made.receive(message('bad1'), message('bad2'))
    await made.receive(message('bad3', { sender: '+15550003333', to: { to: '+15550003333' } }))
    await advanceUntil(() => made.deliveries.load().messages === 0)
    await until(() => made.sent.length === 2)
    await clock.advance(HOUR_MS)
    await made.receive(message('bad4'))
    await until(() => made.sent.length === 3)
    expect(textsOf(made)).toEqual([UNANSWERED, UNANSWERED, UNANSWERED])
    expect(await states(made)).toMatchObject({ inbox: ['dead', 'dead', 'dead', 'dead'] })
  })

  test('is sent for each kind of refusal', async () => {
    const kinds = ['credentials', 'request', 'quota', 'quota']
    const made = await bench({
      turn() {
        throw new AppError('upstream', 'no', { refusedFor: kinds.shift() })
      },
    })
    await made.receive(message('m1'), message('m2'), message('m3'), message('m4'))
    await advanceUntil(() => made.deliveries.load().messages === 0)
    await until(() => made.sent.length === 3)
    expect(await states(made)).toEqual({ inbox: ['dead', 'dead', 'dead', 'dead'], outbox: ['sent', 'sent', 'sent'] })
  })

  test.each<[why: string, options: { readonly texts?: { readonly unanswered: string } }, more: Partial<Inbound>]>([
    ['the text is empty', { texts: { unanswered: '' } }, {}],
    ['nobody vouches for the sender', {}, { unverified: true }],
  ])('says nothing where %s', async (_why, options, more) => {
    const made = await bench({ turn, ...options })
    await made.receive(message('bad', more))
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(await states(made)).toEqual({ inbox: ['dead'], outbox: [] })
  })
})

describe('a message whose turn is tried again', () => {
  const away = new AppError('upstream', 'the model is overloaded', { isPassing: true })

  test.each([
    ['after notice_after_secs', {}, 1],
    ['never where notice_after_secs is 0', { notice_after_secs: 0 }, 0],
  ])('tells its sender once that it waits %s', async (_when, config, notices) => {
    let attempts = 0
    const made = await bench({
      config,
      turn() {
        if (attempts++ < 30) throw away
        return 'fine'
      },
    })
    await made.receive(message('m1'))
    await settle()
    expect(made.sent).toEqual([])
    await advanceUntil(() => attempts > 30)
    await until(() => made.sent.length === notices + 1)
    expect(textsOf(made)).toEqual([...Array.from({ length: notices }, () => GATEWAY_TEXTS.waiting.text.slice(0, 100)), 'fine'].map(trimmed))
  })
})

describe('a message that waits long', () => {
  const minutes = async (count: number): Promise<void> => {
    for (let minute = 0; minute < count; minute++) {
      await clock.advance(60_000)
      await settle()
    }
  }
  const waiting = trimmed(GATEWAY_TEXTS.waiting.text)

  test('tells its sender once, also when the model is away for hours', async () => {
    const made = await bench({
      turn() {
        throw new AppError('upstream', 'the model is overloaded', { isPassing: true })
      },
    })
    await made.receive(message('m1'))
    await minutes(200)
    expect(textsOf(made)).toEqual([waiting])
  })

  test('tells its sender at once when the model asks for a long pause', async () => {
    const made = await bench({
      turn() {
        throw new AppError('upstream', 'too many requests', { isPassing: true, retryAfterSecs: 1800 })
      },
    })
    await made.receive(message('m1'))
    await until(() => made.sent.length === 1)
    expect(textsOf(made)).toEqual([waiting])
    expect(made.turns).toHaveLength(1)
  })

  test('for a limit in dollars tells its sender, and runs within minutes after the limit was raised', async () => {
    let isSpent = true
    const made = await bench({
      turn() {
        if (isSpent) throw new AppError('rate_limited', 'Daily budget of 5 USD is used up', { retryAfterSecs: 36_000 })
        return 'fine'
      },
    })
    await made.receive(message('m1'), message('m2'))
    await minutes(30)
    expect(textsOf(made)).toEqual([waiting])
    expect(await states(made)).toMatchObject({ inbox: ['pending', 'pending'] })
    isSpent = false
    await advanceUntil(() => made.sent.length === 3)
    expect(textsOf(made)).toEqual([waiting, 'fine', 'fine'])
  })
})

describe('the draft of a message that is given up', () => {
  const onDrafts = (update: NonNullable<Channel['update']>) => ({
    channel: { draftEveryMs: 1000, update },
    turn() {
      throw refused
    },
  })

  test('is replaced where the notice is switched off', async () => {
    const shown: string[] = []
    const update = async (_to: unknown, _sent: unknown, { text }: { readonly text: string }) => void shown.push(text)
    const made = await bench({ ...onDrafts(update), texts: { unanswered: '' } })
    await made.receive(message('m1'))
    await until(() => shown.length === 1)
    expect([textsOf(made), shown]).toEqual([['…'], ['(no answer)']])
  })

  test('that is gone leaves the notice as a message', async () => {
    const update = () => Promise.reject(new AppError('invalid_request', 'there is no such message'))
    const made = await bench(onDrafts(update))
    await made.receive(message('m1'))
    await until(() => made.sent.length === 2)
    expect(textsOf(made)).toEqual(['…', UNANSWERED])
    expect(new Set(made.sent.map(({ clientId }) => clientId)).size).toBe(2)
  })
})

/** The channel of the bench cuts a message after 100 characters, at a space. */
function trimmed(text: string): unknown {
  return text.length < 100 ? text : expect.stringMatching(/^The answer takes longer than usual\./)
}

describe('a message that no procedure has room for', () => {
  const webhook = { path: '/x', verify: () => ({ by: 'test' }), parse: () => [], sample: () => ({ headers: {}, body: '' }) } as const
  const waiting = trimmed(GATEWAY_TEXTS.waiting.text)
  const minutes = async (count: number): Promise<void> => {
    for (let minute = 0; minute < count; minute++) {
      await clock.advance(60_000)
      await settle()
    }
  }

  test('tells its sender once that it waits, and nothing more when its run starts', async () => {
    let isFull = true
    const made = await bench({ triggers: ['/x'], channel: { webhook }, isFull: () => isFull })
    await made.receive(message('m1'))
    await minutes(90)
    expect(textsOf(made)).toEqual([waiting])
    isFull = false
    await minutes(1)
    expect(await states(made)).toEqual({ inbox: ['done'], outbox: ['sent'] })
  })

  test('tells its sender when it is given up after max_age_hours', async () => {
    const made = await bench({ config: { max_age_hours: 1 }, triggers: ['/x'], channel: { webhook }, isFull: () => true })
    await made.receive(message('m1'))
    await minutes(62)
    expect(textsOf(made)).toEqual([waiting, UNANSWERED])
    expect(await states(made)).toEqual({ inbox: ['dead'], outbox: ['sent', 'sent'] })
  })
})

test('a message that its procedures skip tells its sender, and can be replayed', async () => {
  let cools = true
  const webhook = { path: '/x', verify: () => ({ by: 'test' }), parse: () => [], sample: () => ({ headers: {}, body: '' }) } as const
  const made = await bench({ triggers: ['/x'], channel: { webhook }, cools: () => cools })
  await made.receive(message('m1'))
  await settle()
  expect(textsOf(made)).toEqual([UNANSWERED])
  expect(await made.store.inbox.get(1)).toMatchObject({ state: 'limited', error: 'procedure: it cools down' })
  cools = false
  expect(await made.store.inbox.replay(1)).toBe(true)
})
