/** The messages that a room overhears: bounded in number and age, each once, also when several processes write. */
import { type Inbound, shardOf, type TurnRow } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { describe, expect, it, vi } from 'vitest'
import { Overheard, overheardLine } from './overheard.ts'

const HOUR_MS = 3_600_000
const SESSION = 'channel:x/bot/room/'

function setUp() {
  const time = { nowMs: 100 * HOUR_MS }
  const { keyValue } = testHost()
  /** The turns that have ended with an answer. */
  const ended = new Set<string>()
  /** The turns that a crash has interrupted. */
  const open = new Set<string>()
  const rowOf = (id: string) =>
    ended.has(id) ? { status: 'done', endedAtMs: 1 } : open.has(id) ? { status: 'running', endedAtMs: null } : undefined
  const turns = { get: async (id: string) => rowOf(id) as TurnRow | undefined }
  const made = () => new Overheard({ store: { keyValue: () => keyValue, turns }, clock: { nowMs: () => time.nowMs } })
  const overheard = made()
  const take = async (turnId: string, isResumed = false) =>
    (await overheard.take(SESSION, { turnId, atMs: time.nowMs, isResumed })).map(({ id }) => id)
  return { time, keyValue, made, ended, open, take, overheard }
}

const line = (id: string, atMs: number, more: Partial<Inbound> = {}) =>
  overheardLine({ id, account: 'bot', sender: 'bob', to: { to: 'room' }, text: `text of ${id}`, ...more }, 'listed', atMs)

it('keeps the newest 50 lines, each id once', async () => {
  const { overheard, time } = setUp()
  for (let number = 0; number < 60; number++) await overheard.add(SESSION, line(`n${number}`, time.nowMs))
  await overheard.add(SESSION, line('n59', time.nowMs, { text: 'again' }))
  const ids = (await overheard.before(SESSION, time.nowMs)).map(({ id }) => id)
  expect([ids.length, ids[0], ids.at(-1)]).toEqual([50, 'n10', 'n59'])
})

it('loses no line that several processes write at the same time', async () => {
  const { made, time, overheard } = setUp()
  await Promise.all(Array.from({ length: 12 }, (_, index) => made().add(SESSION, line(`n${index}`, time.nowMs))))
  expect(await overheard.before(SESSION, time.nowMs)).toHaveLength(12)
})

it('neither shows nor keeps a line for longer than a day, also after the clock was set back', async () => {
  const { overheard, time, keyValue } = setUp()
  await overheard.add(SESSION, line('old', time.nowMs))
  time.nowMs += 23 * HOUR_MS
  await overheard.add(SESSION, line('new', time.nowMs))
  await overheard.sweep()
  expect((await overheard.before(SESSION, time.nowMs)).map(({ id }) => id)).toEqual(['old', 'new'])
  time.nowMs += 2 * HOUR_MS
  expect((await overheard.before(SESSION, time.nowMs)).map(({ id }) => id)).toEqual(['new'])
  await overheard.sweep()
  expect(await keyValue.list('', 9)).toMatchObject([{ value: [{ id: 'new' }] }])
  time.nowMs -= 80 * HOUR_MS
  await overheard.sweep()
  expect(await keyValue.list('', 9)).toEqual([])
})

it('gives a turn the lines up to its time, and drops them with it', async () => {
  const { overheard, time, take } = setUp()
  await overheard.add(SESSION, line('1', time.nowMs))
  await overheard.add(SESSION, line('2', time.nowMs + 5))
  expect(await take('a')).toEqual(['1'])
  await overheard.drop(SESSION, 'a')
  expect((await overheard.before(SESSION, time.nowMs + 5)).map(({ id }) => id)).toEqual(['2'])
})

it('gives no other turn the lines of one that ended before they were dropped', async () => {
  const { overheard, time, take, ended, keyValue } = setUp()
  await overheard.add(SESSION, line('1', time.nowMs))
  expect(await take('a')).toEqual(['1'])
  ended.add('a')
  await overheard.add(SESSION, line('2', time.nowMs))
  expect((await overheard.before(SESSION, time.nowMs)).map(({ id }) => id)).toEqual(['2'])
  expect(await take('b')).toEqual(['2'])
  expect(JSON.stringify(await keyValue.list('', 9))).not.toContain('text of 1')
})

it('gives the lines of a turn without an answer to the next one', async () => {
  const { overheard, time, take } = setUp()
  await overheard.add(SESSION, line('1', time.nowMs))
  expect([await take('a'), await take('b')]).toEqual([['1'], ['1']])
})

it('leaves the lines of an interrupted turn to it, although another turn runs before it goes on', async () => {
  const { overheard, time, take, open } = setUp()
  await overheard.add(SESSION, line('1', time.nowMs))
  expect(await take('a')).toEqual(['1'])
  open.add('a')
  await overheard.add(SESSION, line('2', time.nowMs))
  expect(await take('b')).toEqual(['2'])
  expect(await take('a', true)).toEqual(['1'])
  open.delete('a')
  expect(await take('c')).toEqual(['1', '2'])
})

it('gives a turn that goes on from a checkpoint no further lines, and keeps them for the next one', async () => {
  const { overheard, time, take } = setUp()
  await overheard.add(SESSION, line('1', time.nowMs))
  await take('a')
  await overheard.add(SESSION, line('2', time.nowMs))
  expect(await take('a', true)).toEqual(['1'])
  await overheard.drop(SESSION, 'a')
  expect(await take('b')).toEqual(['2'])
})

it('neither keeps nor changes a line that was read, without its words, when its message comes again', async () => {
  const { overheard, time, take, keyValue } = setUp()
  await overheard.add(SESSION, line('1', time.nowMs))
  await take('a')
  await overheard.drop(SESSION, 'a')
  await overheard.add(SESSION, line('1', time.nowMs))
  expect(await overheard.change(SESSION, '1', line('1', time.nowMs, { text: 'newer text of 1' }))).toBe(true)
  expect(await overheard.change(SESSION, '1', undefined)).toBe(true)
  await overheard.add(SESSION, line('1', time.nowMs))
  expect(await take('b')).toEqual([])
  expect(JSON.stringify(await keyValue.list('', 9))).not.toMatch(/text of 1|bob/)
})

it('reads the lines of a room once for a turn without any, and twice for a turn that drops some', async () => {
  const { overheard, time, take, keyValue } = setUp()
  const reads = vi.spyOn(keyValue, 'get')
  await take('a')
  await overheard.drop(SESSION, 'a')
  expect(reads).toHaveBeenCalledTimes(1)
  await overheard.add(SESSION, line('1', time.nowMs))
  reads.mockClear()
  await take('b')
  await overheard.drop(SESSION, 'b')
  expect(reads).toHaveBeenCalledTimes(2)
})

describe('a change without the thread of its message', () => {
  const THREADS = 250
  const thread = (number: number) => `${SESSION}t${number}/`

  it('finds the message in any thread by small reads of the room, however many lines the threads have', async () => {
    const { overheard, time, keyValue } = setUp()
    for (let number = 0; number < THREADS; number++)
      await overheard.add(thread(number), line(`n${number}`, time.nowMs), { isFoundWithoutThread: true })
    await overheard.add(SESSION, line('plain', time.nowMs), { isFoundWithoutThread: true })
    const reads = [vi.spyOn(keyValue, 'get'), vi.spyOn(keyValue, 'list')]
    expect(await overheard.change(SESSION, 'unknown', undefined, { lacksThread: true })).toBe(false)
    expect(reads.map(({ mock }) => mock.calls.length)).toEqual([2, 0])
    for (let number = 0; number < THREADS; number++)
      expect(await overheard.change(SESSION, `n${number}`, undefined, { lacksThread: true })).toBe(true)
    expect((await Promise.all(Array.from({ length: THREADS }, (_, at) => overheard.before(thread(at), time.nowMs)))).flat()).toEqual([])
    // A thread that began after its first message was overheard.
    expect(await overheard.change(thread(1), 'plain', undefined, { lacksThread: true })).toBe(true)
  })

  it('is looked for in its own thread alone where the platform names it', async () => {
    const { overheard, time, keyValue } = setUp()
    await overheard.add(thread(1), line('1', time.nowMs))
    const reads = vi.spyOn(keyValue, 'get')
    expect(await overheard.change(SESSION, '1', undefined)).toBe(false)
    expect(reads).toHaveBeenCalledTimes(1)
  })

  it('reaches no message of another room or agent', async () => {
    const { overheard, time } = setUp()
    await overheard.add(thread(1), line('1', time.nowMs), { isFoundWithoutThread: true })
    for (const other of ['channel:x/bot/room2/', `agent:other/${SESSION}`])
      expect(await overheard.change(other, '1', undefined, { lacksThread: true })).toBe(false)
  })

  it('keeps what it needs for a day, and for a bounded number of messages', async () => {
    const { overheard, time, keyValue } = setUp()
    // Ids that are kept in the same part.
    const ids: string[] = []
    for (let number = 0; ids.length < 260; number++) if (shardOf(`n${number}`) === 0) ids.push(`n${number}`)
    for (const id of ids) await overheard.add(thread(0), line(id, time.nowMs), { isFoundWithoutThread: true })
    const parts = (await keyValue.list(`session:${SESSION}\0`, 99)).map(({ value }) => (value as unknown[]).length)
    expect([parts.length, Math.max(...parts)]).toEqual([1, 250])
    time.nowMs += 25 * HOUR_MS
    await overheard.sweep()
    expect(await keyValue.list('', 99)).toEqual([])
  })
})

it('cuts a long text and names files', () => {
  const { text } = line('1', 0, { text: 'x'.repeat(5000) })
  expect([text.length, text.at(-1)]).toEqual([2001, '…'])
  expect(line('2', 0, { text: '', attachments: [{ kind: 'file', name: 'a.pdf', source: { id: 'f' } }] }).text).toBe('[a.pdf]')
})
