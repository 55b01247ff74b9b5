import type { TurnRequest } from '@sluice/agent'
import { AppError, type Channel, GATEWAY_TEXTS, type Inbound } from '@sluice/sdk'
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

  test.each([0, 1])('are in one turn after a stop that comes after %d commits', async (commits) => {
    let left = commits
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        join: async (...given) => {
          if (left-- <= 0) throw new AppError('unavailable', 'the process ended')
          return inbox.join(...given)
        },
      },
    }))
    const first = await bench({ ...options, store })
    await first.receive(...ALBUM)
    await pause()
    if (commits === 0) expect(first.turns).toEqual([])
    await running.splice(0)[0]?.stop(0)
    const turnsBefore = first.turns.length
    const made = await bench({ ...options, store: open() })
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(turnsBefore + made.turns.length).toBe(1)
    const [text] = [...texts(first), ...texts(made)]
    for (const name of ['a', 'b', 'c']) expect(text).toMatch(new RegExp(`\\b${name}\\b`))
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
  const edit = (id: string, of: string, text: string) =>
    member(id, text, { attachments: [], changes: { message: of, what: 'edited', only: 'text' } })
  const deletion = (id: string, of: string) => message(id, { text: '', sender: '', changes: { message: of, what: 'deleted' } })

  /** An album that has been joined, and whose turn has not begun. */
  async function joined() {
    let isHeld = true
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        start: async (...given) => (isHeld ? Promise.reject(new AppError('unavailable', 'not yet')) : inbox.start(...given)),
      },
    }))
    const made = await bench({ store })
    await made.receive(member('a', 'which is best?'), member('b', 'the blue one?'), member('c'))
    await pause()
    expect((await states(made)).inbox).toEqual(['done', 'done', 'pending'])
    return {
      made,
      async begin() {
        isHeld = false
        await advanceUntil(() => made.turns.length === 1)
        return texts(made)[0]
      },
    }
  }

  test.each([
    ['the first piece', 'a', /^which is worst\?\nthe blue one\?/],
    ['a later piece', 'b', /^which is best\?\nwhich is worst\?/],
  ])('that has been joined changes %s', async (_, id, expected) => {
    const { made, begin } = await joined()
    await made.receive(edit('e', id, 'which is worst?'))
    await settle()
    expect(await begin()).toMatch(expected)
  })

  test.each([
    ['a', /^the blue one\?/],
    ['b', /^which is best\?/],
  ])('removes the words and the file of piece %s before the model reads them', async (id, expected) => {
    const { made, begin } = await joined()
    await made.receive(deletion('d', id))
    await settle()
    const text = await begin()
    expect(text).toMatch(expected)
    expect(text).not.toMatch(new RegExp(`\\b${id}\\b`))
    expect(text).toMatch(/\bc\b/)
  })

  test('ends the message when all pieces are deleted', async () => {
    const { made } = await joined()
    await made.receive(deletion('d1', 'a'), deletion('d2', 'c'), deletion('d3', 'b'))
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(made.turns).toEqual([])
  })

  test('goes to the next turn once the model has read the piece', async () => {
    const made = await bench()
    await made.receive(member('a', 'which is best?'), member('b', 'the blue one?'))
    await pause()
    await until(() => made.sent.length === 1)
    await made.receive(deletion('d', 'b'))
    await settle()
    await made.receive(message('m'))
    await until(() => made.turns.length === 2)
    expect(texts(made)[1]).toMatch(/^\(The sender deleted an earlier message, which began: "the blue one\?"\)/)
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

describe('a turn takes at most 20 further messages', () => {
  const ofAlbum = (album: string, count: number): Inbound[] =>
    Array.from({ length: count }, (_, index) => member(`${album}${index}`, `${album}${index}`, { group: { id: album }, attachments: [] }))
  const someTexts = (count: number): Inbound[] => Array.from({ length: count }, (_, index) => message(`n${index}`))

  test.each([
    ['an album that fits goes with it', [...someTexts(18), ...ofAlbum('a', 3), ...ofAlbum('b', 1)], [21, 1]],
    ['an album that does not fit goes to the next turn', [...someTexts(20), ...ofAlbum('a', 3)], [20, 3]],
    [
      'so does one that begins before it',
      [...someTexts(18), ...ofAlbum('a', 1), ...ofAlbum('b', 1), ...ofAlbum('a', 3).slice(1), ...ofAlbum('b', 2).slice(1)],
      [18, 5],
    ],
    ['an album of more pictures is several turns', ofAlbum('a', 25), [21, 4]],
  ] as const)('%s', async (_, messages, sizes) => {
    const before = await bench({ turnsMax: 0 })
    await before.receive(...messages)
    await settle()
    await running.splice(0)[0]?.stop(0)
    await clock.advance(60_000)
    const made = await bench({ store: open(), pacing: { batchMs: PIECES_PAUSE_MS } })
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(texts(made).map((text) => text.split('\n').length)).toEqual(sizes)
  })
})

describe('a turn takes messages as long as their files fit into its 10', () => {
  const files = (id: string, count: number, more: Partial<Inbound> = {}): Inbound =>
    message(id, { attachments: Array.from({ length: count }, (_, index) => picture(`${id}-${index}`)), ...more })
  const ofAlbum = (album: string, count: number, from = 0): Inbound[] =>
    Array.from({ length: count }, (_, index) => member(`${album}-${from + index}`, '', { group: { id: album } }))
  const someTexts = (count: number): Inbound[] => Array.from({ length: count }, (_, index) => message(`n${index}`))

  test.each([
    ['messages with files', [files('a', 4), files('b', 6), files('c', 1), message('d')], [10, 1]],
    ['a message without files joins a full turn', [files('a', 10), message('b'), files('c', 3), files('d', 7)], [10, 10]],
    ['albums', [...ofAlbum('a', 7), ...ofAlbum('b', 4)], [7, 4]],
    [
      'an album that begins between the pictures of another',
      [...ofAlbum('a', 4), ...ofAlbum('b', 2), ...ofAlbum('a', 4, 4), ...ofAlbum('b', 2, 2)],
      [8, 4],
    ],
    ['a message between the pictures of an album', [...ofAlbum('a', 4), files('m', 5), ...ofAlbum('a', 4, 4)], [8, 5]],
    ['an album behind many messages', [...someTexts(19), ...ofAlbum('a', 9), files('b', 2)], [0, 9, 2]],
    ['a message that is too large alone', [message('a'), files('b', 12), files('c', 1)], [0, 10, 1]],
    ['an album that is too large alone', [files('a', 1), ...ofAlbum('b', 12), message('c')], [1, 10]],
  ] as const)('%s', async (_, messages, sizes) => {
    const before = await bench({ turnsMax: 0 })
    await before.receive(...messages)
    await settle()
    await running.splice(0)[0]?.stop(0)
    await clock.advance(60_000)
    const made = await bench({ store: open(), pacing: { batchMs: PIECES_PAUSE_MS } })
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(texts(made).map((text) => text.match(/-\d+\]/g)?.length ?? 0)).toEqual(sizes)
    expect((await states(made)).inbox).toEqual(messages.map(() => 'done'))
  })

  test('after a stop between the commit that joins them and the turn', async () => {
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: { ...inbox, start: () => Promise.reject(new AppError('unavailable', 'the process ended')) },
    }))
    const first = await bench({ store, pacing: { batchMs: 300 } })
    await first.receive(files('a', 4), files('b', 4))
    await pause(300)
    expect((await states(first)).inbox).toEqual(['done', 'pending'])
    await first.receive(files('c', 2), files('d', 1))
    await running.splice(0)[0]?.stop(0)
    const made = await bench({ store: open(), pacing: { batchMs: PIECES_PAUSE_MS } })
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(texts(made).map((text) => text.match(/-\d+\]/g)?.length)).toEqual([10, 1])
    expect(texts(made).join('\n')).not.toMatch(/left out/)
  })
})

describe('a stop between the messages of a person', () => {
  const inRoom = (one: Inbound): Inbound => ({ ...one, to: { to: 'room' }, addressed: 'mention' })

  /** Receives the first messages, stops for a minute, and starts again. */
  async function restarted(...messages: Inbound[]) {
    await stored(...messages)
    const made = await bench({ store: open(), pacing: { batchMs: undefined } })
    await settle()
    return made
  }

  async function stored(...messages: Inbound[]): Promise<void> {
    const before = await bench({ turnsMax: 0 })
    await before.receive(...messages)
    await settle()
    await running.splice(0)[0]?.stop(0)
    await clock.advance(60_000)
  }

  test.each([
    ['the pictures of an album', [member('a', 'one')], [member('b', 'two')]],
    ['the parts of a long text', [near('x')], [message('y')]],
    ['an album behind another message', [message('m'), member('a', 'one')], [member('b', 'two')]],
    ['an album behind another message of a room', [inRoom(message('m')), inRoom(member('a', 'one'))], [inRoom(member('b', 'two'))]],
  ])('leaves %s in one turn, if the platform brings the rest after the start', async (_, first, rest) => {
    const made = await restarted(...first)
    await clock.advance(PIECES_PAUSE_MS - 100)
    await settle()
    await made.receive(...rest)
    await pause()
    await advanceUntil(() => made.deliveries.load().messages === 0)
    const [last] = rest
    const text = texts(made).find((one) => one.includes(last?.text ?? ''))
    expect(text).toContain(first.at(-1)?.text)
    expect(texts(made).filter((one) => one.includes(last?.text ?? ''))).toHaveLength(1)
  })

  test.each([
    ['an album', [member('a', 'one')]],
    ['an album behind another message', [message('m'), member('a', 'one')]],
  ])('leaves %s in one turn, however long its channel takes to connect', async (_, first) => {
    await stored(...first)
    const listen: Channel['listen'] = async (deliver, { signal, report }) => {
      await clock.sleep(4000, signal)
      await deliver(member('b', 'two'))
      report.connected()
      await clock.sleep(1_000_000, signal)
    }
    const made = await bench({ store: open(), pacing: { batchMs: undefined }, channel: { listen } })
    for (let at = 0; at < 80; at++) await pause(100)
    expect(texts(made).at(-1)).toMatch(/^one\ntwo\n/)
  })

  test('waits for no more than 10 seconds for a channel that does not connect', async () => {
    await stored(member('a', 'one'))
    const listen: Channel['listen'] = (_deliver, { signal }) => clock.sleep(1_000_000, signal)
    const made = await bench({ store: open(), channel: { listen } })
    for (let at = 0; at < 100; at++) await pause(100)
    expect(texts(made)).toHaveLength(1)
  })

  test('delays the turn of an album by no more than 1.5 seconds, and that of another message not at all', async () => {
    const album = await restarted(member('a', 'one'))
    expect(texts(album)).toEqual([])
    await pause()
    await until(() => album.turns.length === 1)
    await running.splice(0)[0]?.stop(0)
    const text = await restarted(message('m'))
    expect(texts(text)).toEqual(['text of m'])
  })

  test('joins no texts of the longest length that were written far apart before the stop', async () => {
    const before = await bench({ turnsMax: 0 })
    await before.receive(near('x'))
    await settle()
    await clock.advance(1_800_000)
    await before.receive(near('y'))
    await settle()
    await running.splice(0)[0]?.stop(0)
    await clock.advance(60_000)
    const made = await bench({ store: open() })
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(texts(made)).toEqual([near('x').text, near('y').text])
  })

  test.each([
    ['in a room', inRoom(message('m'))],
    ['that was edited', message('m', { editedAtMs: 1 })],
  ])('delays no message %s', async (_, one) => {
    expect(texts(await restarted(one))).toEqual(['text of m'])
  })
})

describe('albums of one person between which others of the same person alternate are whole', () => {
  const quote = message('q', { quoted: { by: 'bot', text: 'old' } as never })
  const stored = async (...messages: readonly Inbound[]) => {
    const store = open()
    const before = await bench({ store, turnsMax: 0, pacing: { batchMs: undefined } })
    await before.receive(...messages)
    await settle()
    await running.splice(0)[0]?.stop(0)
    await clock.advance(60_000)
    const made = await bench({ store, pacing: { batchMs: undefined } })
    for (let paused = 0; paused < 10; paused++) await pause()
    await until(() => made.deliveries.load().messages === 0)
    return texts(made).map((text) => text.split('\n').filter((line) => /^(?:one|two|three) /.test(line)))
  }
  /** The lines of each album, by the turns that have them. */
  const turnsOf = (turns: readonly (readonly string[])[], album: string) =>
    turns.map((lines) => lines.filter((line) => line.startsWith(`${album} `)).length).filter((count) => count > 0)

  test('where a message that cannot join stands between the pictures', async () => {
    const turns = await stored(
      message('a', { text: 'one 1', group: { id: 'one' } }),
      quote,
      message('b', { text: 'one 2', group: { id: 'one' } }),
    )
    expect(turnsOf(turns, 'one')).toEqual([2])
  })

  test('where an album goes on behind a message that cannot join', async () => {
    const turns = await stored(
      message('a', { text: 'one 1', group: { id: 'one' } }),
      message('b', { text: 'two 1', group: { id: 'two' } }),
      message('c', { text: 'one 2', group: { id: 'one' } }),
      quote,
      message('d', { text: 'two 2', group: { id: 'two' } }),
    )
    expect([turnsOf(turns, 'one'), turnsOf(turns, 'two')]).toEqual([[2], [2]])
  })
})

test('the pictures of an album are one turn, however much other people of the room write between them', async () => {
  const made = await bench()
  const inRoom = (one: Inbound): Inbound => ({ ...one, to: { to: 'room' }, addressed: 'mention' })
  const others = Array.from({ length: 25 }, (_, index) => message(`o${index}`, { sender: '+15550003333' }))
  await made.receive(...[member('a', 'one'), ...others, member('b', 'two')].map(inRoom))
  await pause()
  await until(() => made.turns.length >= 1)
  expect(texts(made)[0]).toMatch(/^one\ntwo\n/)
})

describe('messages of one person', () => {
  const batch = { batchMs: undefined }
  const room = (id: string, more: Partial<Inbound> = {}): Inbound => message(id, { to: { to: 'room' }, addressed: 'mention', ...more })

  test('in a direct chat are answered at once, and what waits meanwhile is one turn', async () => {
    const released = Promise.withResolvers<void>()
    const acknowledged: string[] = []
    const made = await bench({
      pacing: batch,
      channel: { acknowledge: async ({ id }) => void acknowledged.push(id) },
      turn: ({ text }) => released.promise.then(() => `re: ${text}`),
    })
    await made.receive(message('m1'))
    await until(() => made.turns.length === 1)
    await made.receive(message('m2'), message('m3'))
    await made.receive(message('m3'), message('m4'))
    await settle()
    released.resolve()
    await until(() => made.sent.length === 2)
    expect(texts(made)).toEqual(['text of m1', 'text of m2\ntext of m3\ntext of m4'])
    expect(acknowledged).toEqual(['m1', 'm2', 'm3', 'm4'])
    await settle()
    expect((await states(made)).inbox).toEqual(Array(4).fill('done'))
    const [, second] = await made.store.inbox.list({ limit: 4 }).then((rows) => rows.toReversed())
    expect(await made.store.inbox.get((second?.number ?? 0) + 1)).toMatchObject({ joinedTo: second?.number, turnId: null })
  })

  test('in a room wait for the next one for 1.5 seconds, or as long as the channel says', async () => {
    const made = await bench({ pacing: batch })
    await made.receive(room('m1'))
    await pause(1000)
    await made.receive(room('m2'))
    await pause(1499)
    expect(made.turns).toEqual([])
    await pause(1)
    await until(() => made.turns.length === 1)
    expect(texts(made)).toEqual(['text of m1\ntext of m2'])
  })

  test('stay apart from the pieces of other people, and keep their order', async () => {
    const made = await bench({ pacing: { batchMs: 300 } })
    await made.receive(room('a1'), room('b1', { sender: '+15550003333' }), room('a2'), room('b2', { sender: '+15550003333' }))
    await pause(300)
    await pause(300)
    await until(() => made.sent.length === 2)
    expect(texts(made).toSorted()).toEqual(['text of a1\ntext of a2', 'text of b1\ntext of b2'])
  })

  test.each(['/help', '/model'])('stay apart where %s comes between them, also once it has ended and after a restart', async (command) => {
    const store = open()
    const options = { store, pacing: { batchMs: 1500 }, models: ['one', 'two'] }
    const made = await bench(options)
    for (const one of [message('m1'), message('c', { text: command }), message('m2'), message('m3')]) {
      await made.receive(one)
      await settle()
    }
    expect([made.turns.length, made.sent.length > 0]).toEqual([0, true])
    await running.splice(0)[0]?.stop(0)
    const again = await bench({ ...options, ownership: made.ownership })
    await pause(5000)
    expect(texts(again)).toEqual(['text of m1', 'text of m2\ntext of m3'])
  })

  test('are one album, although a command comes between its pictures', async () => {
    const made = await bench()
    await made.receive(ALBUM[0] as Inbound)
    await made.receive(message('c', { text: '/help' }))
    await settle()
    await made.receive(ALBUM[1] as Inbound, ALBUM[2] as Inbound)
    await pause(5000)
    expect(made.turns).toHaveLength(1)
  })

  test('wait for a correction after an edit', async () => {
    const made = await bench({ pacing: batch })
    await made.receive(room('m1'))
    await settle()
    await made.receive(room('e', { text: 'better', sentAtMs: clock.nowMs(), changes: { message: 'm1', what: 'edited' } }))
    await pause()
    await until(() => made.turns.length === 1)
    expect(texts(made)).toEqual(['better'])
  })

  test('with a quote of their own are turns of their own', async () => {
    const made = await bench({ pacing: { batchMs: 300 } })
    await made.receive(message('m1'), message('m2', { quoted: { by: 'bot', text: 'old' } as never }), message('m3'))
    await pause(300)
    await pause(300)
    await until(() => made.sent.length === 2)
    expect(made.turns).toHaveLength(2)
    expect(texts(made)[0]).toBe('text of m1')
  })

  test('never join what Sluice sends in their name', async () => {
    const made = await bench({ pacing: batch })
    await made.receive(message('m0'))
    await until(() => made.sent.length === 1)
    const session = made.turns[0]?.session ?? ''
    await made.deliveries.deliver(made.channel, message('reminder'), session, clock.nowMs())
    await made.receive(message('m1'))
    await until(() => made.sent.length === 3)
    expect(texts(made)).toEqual(['text of m0', 'text of reminder', 'text of m1'])
  })

  test('are read once, however often the first one looks', async () => {
    let reads = 0
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        get: async (...given) => {
          reads++
          return inbox.get(...given)
        },
      },
    }))
    const seeded = await bench({ store: open(), pacing: batch, turnsMax: 0 })
    await seeded.receive(room('m1'), room('m2'), room('m3'))
    await settle()
    await running.splice(0)[0]?.stop(0)
    const made = await bench({ store, pacing: { batchMs: 5000 } })
    for (const id of ['m4', 'm5', 'm6']) {
      await pause(1000)
      await made.receive(room(id))
    }
    await pause(5000)
    await until(() => made.turns.length === 1)
    expect(texts(made)[0]?.split('\n')).toHaveLength(6)
    // The first message and the two behind it were stored before the start.
    expect(reads).toBeLessThanOrEqual(3)
  })

  test('with an edit that comes while they are joined are one turn with the new words', async () => {
    const edit = room('e', { text: 'better', changes: { message: 'm1', what: 'edited' } })
    let joins = 0
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        async join(...given) {
          if (joins++ === 0) {
            await made.receive(edit)
            await settle()
          }
          return inbox.join(...given)
        },
      },
    }))
    const made = await bench({ store, pacing: { batchMs: 500 } })
    await made.receive(room('m1'), room('m2'))
    await pause(500)
    await pause()
    expect(texts(made)).toEqual(['better\ntext of m2'])
    expect(joins).toBe(2)
  })

  test('are one turn with the new words when an edit comes while the first one is looked at alone', async () => {
    let looks = 0
    const store = storeWith(open(), ({ inbox }) => ({
      inbox: {
        ...inbox,
        async ofSession(...given) {
          const messages = await inbox.ofSession(...given)
          if (looks++ === 0) {
            await made.receive(room('e', { text: 'better', changes: { message: 'm1', what: 'edited' } }))
            await settle()
          }
          return messages
        },
      },
    }))
    const made = await bench({ store, pacing: { batchMs: 500 } })
    await made.receive(room('m1'), room('m2'))
    await pause(500)
    await pause()
    expect(texts(made)).toEqual(['better\ntext of m2'])
  })
})

describe('messages that are one turn', () => {
  type Made = Awaited<ReturnType<typeof bench>>
  const write = async (made: Made, ...ids: string[]) => {
    await made.receive(...ids.map((id) => message(id)))
    await pause(300)
  }
  /** Replays the message that ended in this state. Resolves to the answer. */
  const replay = async ({ store, deliveries, sent }: Made, state: 'dead' | 'limited'): Promise<string | undefined> => {
    const ended = await store.inbox.list({ limit: 5, state })
    expect(ended).toMatchObject([{ messageId: 'm1' }])
    const before = sent.length
    expect(await store.inbox.replay(ended[0]?.number ?? 0)).toBe(true)
    deliveries.wake()
    await advanceUntil(() => sent.length > before)
    return sent.at(-1)?.text
  }

  test('have one notice when it is a dead letter, and a replay answers all of them', async () => {
    let isRefused = true
    const made = await bench({
      pacing: { batchMs: 300 },
      turn({ text }) {
        if (isRefused) throw new AppError('upstream', 'no credit', { refusedFor: 'billing' })
        return `re: ${text}`
      },
    })
    await write(made, 'm1', 'm2')
    await until(() => made.sent.length === 1)
    expect(made.sent).toMatchObject([{ text: GATEWAY_TEXTS.unanswered.text, to: { replyTo: 'm1' } }])
    isRefused = false
    expect(await replay(made, 'dead')).toBe('re: text of m1\ntext of m2')
  })

  test('have one notice when a limit of their sender ends them, and a replay answers all of them', async () => {
    const made = await bench({
      pacing: { batchMs: 300 },
      limitsOf: ({ client }) => [{ key: client, turnsPerHour: 1, turnsInFlight: 0, usdPerDay: 0 }],
    })
    await write(made, 'm0')
    await write(made, 'm1', 'm2')
    await until(() => made.sent.length === 2)
    expect(made.sent[1]?.text).toContain('You have reached the limit for messages: 1 an hour.')
    expect(await replay(made, 'limited')).toBe('re: text of m1\ntext of m2')
  })

  test.each([
    ['/stop', 'Stopped.'],
    ['/new', 'This is a new conversation.'],
  ])('end with it at %s', async (command, told) => {
    const { promise, reject } = Promise.withResolvers<string>()
    const abort = () => {
      reject(new AppError('aborted', 'The turn was aborted'))
      return true
    }
    const turn = ({ signal }: TurnRequest) => {
      signal?.addEventListener('abort', abort)
      return promise
    }
    const made = await bench({ pacing: { batchMs: 300 }, turn, abort })
    await write(made, 'm1', 'm2')
    await made.receive(message('c', { text: command }))
    await advanceUntil(() => made.deliveries.load().messages === 0)
    expect(made.sent.map(({ text }) => text)).toEqual([expect.stringContaining(told)])
    expect([made.turns.length, (await states(made)).inbox]).toEqual([1, ['done', 'done', 'done']])
  })

  test('are answered once after an outage of the store that let no attempt end', async () => {
    let isFull = true
    const full = async () => Promise.reject(new AppError('unavailable', 'No space left on device', { isPassing: true }))
    const store = storeWith(open(), ({ inbox, turns }) => ({
      inbox: { ...inbox, retry: (...given) => (isFull ? full() : inbox.retry(...given)) },
      turns: { ...turns, finish: (end) => (isFull ? full() : turns.finish(end)) },
    }))
    const made = await bench({ store, pacing: { batchMs: 300 } })
    await write(made, 'm1', 'm2')
    await advanceUntil(() => made.turns.length >= 3)
    isFull = false
    await advanceUntil(() => made.deliveries.load().messages === 0 && made.sent.length > 0)
    expect(made.sent.map(({ text }) => text)).toEqual(['re: text of m1\ntext of m2'])
  })

  test('leave no words behind in an erased conversation', async () => {
    const made = await bench({ pacing: { batchMs: 300 } })
    await write(made, 'm1', 'm2')
    await until(() => made.sent.length === 1)
    await made.store.sessions.erase(made.turns[0]?.session ?? '', { atMs: clock.nowMs(), by: 'test' })
    for (const { number } of await made.store.inbox.list({ limit: 5 }))
      expect(await made.store.inbox.get(number)).toMatchObject({ message: null, raw: null })
  })
})
