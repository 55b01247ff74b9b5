import { AppError, type Inbound } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import {
  advanceUntil,
  bench,
  bodyWebhook,
  clock,
  message,
  open,
  running,
  settle,
  setUpDeliveries,
  states,
  storeWith,
  until,
} from '../testing/delivery-bench.ts'
import { PIECES_PAUSE_MS } from './pieces.ts'

setUpDeliveries()

const picture = (name: string) => ({ name, source: { id: name } }) as never
const member = (id: string, text = '', more: Partial<Inbound> = {}): Inbound =>
  message(id, { text, group: { id: 'album' }, attachments: [picture(id)], ...more })
const ALBUM = [member('a', 'which is best?'), member('b'), member('c')]
const near = (id: string, more: Partial<Inbound> = {}): Inbound => message(id, { text: id.repeat(96), ...more })

const pause = async (ms = PIECES_PAUSE_MS) => {
  await settle()
  await clock.advance(ms)
  await settle()
}
const texts = (made: Awaited<ReturnType<typeof bench>>) => made.turns.map(({ text }) => text)

describe.each([
  ['stored as messages', {}],
  ['stored as the bodies of their requests', { channel: { webhook: bodyWebhook() } }],
])('the pieces of an album, %s,', (_how, options) => {
  test('are one turn and one answer, once no further piece has come for 1.5 seconds', async () => {
    const made = await bench(options)
    await made.receive(ALBUM[0] as Inbound)
    await pause(1000)
    await made.receive(ALBUM[1] as Inbound, ALBUM[2] as Inbound)
    await pause(PIECES_PAUSE_MS - 1)
    expect(made.turns).toEqual([])
    await pause(1)
    await until(() => made.sent.length === 1)
    expect(made.turns).toHaveLength(1)
    expect(texts(made)[0]).toMatch(/^which is best\?\n.*a\b.*\n.*b\b.*\n.*c\b/)
    await settle()
    expect(await states(made)).toEqual({ inbox: ['done', 'done', 'done'], outbox: ['sent'] })
  })

  test('are each deduplicated', async () => {
    const made = await bench(options)
    for (let repeat = 0; repeat < 2; repeat++) await made.receive(...ALBUM)
    await pause()
    await until(() => made.sent.length === 1)
    await made.receive(...ALBUM)
    await pause(60_000)
    expect(made.turns).toHaveLength(1)
  })

  test.each([0, 1, 2, 3])('are in one turn after a stop that comes after %d commits', async (commits) => {
    let left = commits
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        change: async (...given) => {
          if (left-- <= 0) throw new AppError('unavailable', 'the process ended')
          return inbox.change(...given)
        },
      },
    }))
    const first = await bench({ ...options, store })
    await first.receive(...ALBUM)
    await pause()
    if (commits < 2) expect(first.turns).toEqual([])
    await running.splice(0)[0]?.stop(0)
    const turnsBefore = first.turns.length
    const made = await bench({ ...options, store: open() })
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(turnsBefore + made.turns.length).toBe(1)
    const [text] = [...texts(first), ...texts(made)]
    for (const name of ['a', 'b', 'c'])
      expect(text?.match(new RegExp(`channel_3ax[^\\n]*\\b${name}\\b|\\b${name}\\b`, 'g'))?.length).toBeGreaterThan(0)
    expect((await states(made)).inbox).toEqual(['done', 'done', 'done'])
  })
})

test('two albums, albums of two people and other messages stay apart', async () => {
  const made = await bench()
  await made.receive(
    member('a', 'one'),
    member('o', 'two', { group: { id: 'other' } }),
    member('b'),
    message('m'),
    member('p', 'theirs', { sender: '+15550003333', to: { to: '+15550003333' } }),
  )
  await pause()
  await pause()
  await until(() => made.sent.length === 4)
  expect(
    texts(made)
      .map((text) => text.split('\n')[0])
      .toSorted(),
  ).toEqual(['one', 'text of m', 'theirs', 'two'])
})

test('a piece that comes after the turn has begun is a message of its own', async () => {
  const made = await bench()
  await made.receive(member('a', 'one'))
  await pause()
  await until(() => made.sent.length === 1)
  await made.receive(member('b', 'two'))
  await pause()
  await until(() => made.sent.length === 2)
  expect(made.turns).toHaveLength(2)
})

test('pieces that keep coming are waited for 10 seconds at most', async () => {
  const made = await bench()
  for (let index = 0; index < 10; index++) {
    expect(made.turns).toEqual([])
    await made.receive(member(`p${index}`))
    await pause(1000)
  }
  await until(() => made.turns.length === 1)
})

test('a forwarded album stays one forward', async () => {
  const made = await bench()
  const forward = (id: string, text: string) =>
    member(id, '', { attachments: [], forwarded: { from: { kind: 'person', name: 'Eve' }, text, attachments: [picture(id)] } })
  await made.receive(forward('a', 'look'), forward('b', ''))
  await pause()
  await until(() => made.turns.length === 1)
  expect(texts(made)[0]).toMatch(/look/)
})

describe('a text that is nearly as long as the platform allows', () => {
  test('is one message with the parts that follow at once', async () => {
    const made = await bench()
    await made.receive(near('x'), near('y'), message('z', { text: 'the end' }), message('later'))
    await pause()
    await until(() => made.turns.length === 2)
    expect(texts(made)).toEqual([`${'x'.repeat(96)}\n${'y'.repeat(96)}\nthe end`, 'text of later'])
  })

  test('is alone when nothing follows, or what follows comes later', async () => {
    const made = await bench()
    await made.receive(near('x'))
    await pause()
    await until(() => made.sent.length > 0)
    await made.receive(message('m'))
    await until(() => made.turns.length === 2)
    expect(texts(made)).toEqual(['x'.repeat(96), 'text of m'])
  })

  test('is not joined with an album', async () => {
    const made = await bench()
    await made.receive(near('x'), member('a', 'one'))
    await pause()
    await pause()
    await until(() => made.turns.length === 2)
  })
})

describe('a change of a piece', () => {
  test('that has been joined replaces nothing, and the next turn is told of it', async () => {
    const released = Promise.withResolvers<void>()
    let isHeld = true
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        start: async (...given) => (isHeld ? Promise.reject(new AppError('unavailable', 'not yet')) : inbox.start(...given)),
      },
    }))
    const made = await bench({ store })
    await made.receive(member('a', 'which is best?'), member('b'))
    await pause()
    const edit = { message: 'a', what: 'edited', only: 'text' } as const
    await made.receive(member('e', 'which is worst?', { attachments: [], changes: edit }))
    await settle()
    isHeld = false
    released.resolve()
    await advanceUntil(() => made.turns.length === 1)
    expect(texts(made)[0]).toMatch(/which is best\?[\s\S]*b\b/)
    expect(texts(made)[0]).toContain('which is worst?')
  })

  test('within the pause changes that piece, which stays in its album', async () => {
    const made = await bench()
    await made.receive(member('a', 'which is best?'))
    await settle()
    const edit = { message: 'a', what: 'edited', only: 'text' } as const
    await made.receive(message('e', { text: 'which is worst?', changes: edit }))
    await settle()
    await made.receive(member('b'))
    await pause()
    await until(() => made.turns.length === 1)
    expect(texts(made)[0]).toMatch(/^which is worst\?\n[\s\S]*\bb\b/)
  })
})
