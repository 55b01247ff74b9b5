import type { EventFollower, EventLog, SluiceEvent } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BusEvent, createEventBus } from './event-bus.ts'

const tick = (n: number, text = ''): SluiceEvent => ({ type: 'x_tick', n, text })
const numbers = (events: readonly BusEvent[]) => events.map(({ seq }) => seq)
const bus = (options: { keptMax?: number; keptCharsMax?: number } = {}) => createEventBus({ clock: testClock(), run: 'r1', ...options })

test('an envelope is the event with the next id and the time in RFC 3339', () => {
  const events = bus()
  const seen: BusEvent[] = []
  events.subscribe((event) => seen.push(event))
  events.emit(tick(1))
  events.emit({ type: 'channel_event', payload: { type: 'note', text: 'a\nb' } })
  expect(seen.map(({ envelope }) => envelope)).toEqual([
    { id: 'r1-1', timestamp: '2026-01-01T00:00:00.000Z', type: 'x_tick', n: 1, text: '' },
    { id: 'r1-2', timestamp: '2026-01-01T00:00:00.000Z', type: 'channel_event', payload: { type: 'note', text: 'a\nb' } },
  ])
  expect(seen.map(({ json }) => JSON.parse(json))).toEqual(seen.map(({ envelope }) => envelope))
  expect(seen.every(({ json }) => !json.includes('\n'))).toBe(true)
})

test('a subscriber gets the events between subscribe and unsubscribe only', () => {
  const events = bus()
  const seen: number[] = []
  events.emit(tick(1))
  const unsubscribe = events.subscribe(({ seq }) => seen.push(seq))
  events.emit(tick(2))
  unsubscribe()
  events.emit(tick(3))
  expect(seen).toEqual([2])
  expect(events.seq).toBe(3)
})

test('since returns the kept events after an id, and counts the missed ones', () => {
  const events = bus({ keptMax: 4 })
  for (let n = 1; n <= 10; n++) events.emit(tick(n))
  expect(numbers(events.since('r1-10').events)).toEqual([])
  expect(numbers(events.since('r1-8').events)).toEqual([9, 10])
  expect(events.since('r1-6').missed).toBe(0)
  expect(numbers(events.since('r1-6').events)).toEqual([7, 8, 9, 10])
  expect(events.since('r1-2').missed).toBe(4)
  expect(numbers(events.since('r1-2').events)).toEqual([7, 8, 9, 10])
})

test.each(['r0-3', 'r1-', 'r1-4.5', 'r1--1', 'r1- 2', 'r1-11', 'r1-999999999999999999', '', 'x'])(
  'since returns all kept events and missed: null for an unknown id: %j',
  (id) => {
    const events = bus({ keptMax: 4 })
    for (let n = 1; n <= 10; n++) events.emit(tick(n))
    const { events: rest, missed } = events.since(id)
    expect(missed).toBeNull()
    expect(numbers(rest)).toEqual([7, 8, 9, 10])
  },
)

test('the kept events are bounded by size, but the newest one is always kept', () => {
  const events = bus({ keptCharsMax: 1000 })
  for (let n = 1; n <= 10; n++) events.emit(tick(n, 'x'.repeat(300)))
  expect(numbers(events.recent(100))).toEqual([9, 10])
  expect(events.since('r1-5').missed).toBe(3)
  events.emit(tick(11, 'x'.repeat(5000)))
  expect(numbers(events.recent(100))).toEqual([11])
  expect(numbers(events.recent(0))).toEqual([])
})

test('missed and kept events after an id add up to all events after it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 60 }),
      fc.integer({ min: 1, max: 12 }),
      fc.nat(60),
      (sizes, keptMax, after) => {
        const events = bus({ keptMax, keptCharsMax: 1200 })
        for (const [n, size] of sizes.entries()) events.emit(tick(n, 'x'.repeat(size)))
        const { events: rest, missed } = events.since(`r1-${after}`)
        if (after > sizes.length) expect(missed).toBeNull()
        else expect((missed ?? Number.NaN) + rest.length).toBe(sizes.length - after)
        expect(numbers(rest)).toEqual(Array.from({ length: rest.length }, (_, i) => sizes.length - rest.length + 1 + i))
        expect(rest.length).toBeLessThanOrEqual(keptMax)
      },
    ),
  )
})

/** A log that numbers events like a database does, once `flush` is called. */
function testLog(base: number) {
  let seq = base
  const followers: EventFollower[] = []
  const waiting: { text: string; from: number; stored: ((seq: number | null) => void) | undefined }[] = []
  return {
    of: (from: number): EventLog & { readonly at: number; isWatched(): boolean } => ({
      at: from,
      append: (text, stored) => void waiting.push({ text, from, stored }),
      async follow(follower) {
        followers.push(follower)
        follower.onStart({ seq, base })
      },
      catchUp: async () => {},
      isWatched: () => followers[from]?.isWatched() === true,
    }),
    drop(events: number) {
      seq += events
    },
    lose(newBase: number) {
      seq = newBase
      for (const follower of followers) follower.onStart({ seq, base: newBase })
    },
    flush() {
      for (const { text, from, stored } of waiting.splice(0)) {
        seq++
        for (const [at, follower] of followers.entries()) follower.onEvents([{ seq, text, isOwn: at === from }])
        stored?.(seq)
      }
    },
  }
}

async function twoBuses() {
  const log = testLog(7_000)
  const buses = [0, 1].map((at) => createEventBus({ clock: testClock(), run: 'prod', shared: log.of(at), keptMax: 4 }))
  for (const one of buses) await one.start()
  const [first, second] = buses
  if (!first || !second) throw new Error('there are two buses')
  return { log, first, second }
}

test('nodes that share a log give their subscribers the same events with the same ids', async () => {
  const { log, first, second } = await twoBuses()
  const seen: BusEvent[][] = [[], []]
  for (const [at, one] of [first, second].entries()) one.subscribe((event) => seen[at]?.push(event))
  second.emit(tick(1))
  first.emit(tick(2), 'd1', tick(3))
  expect(seen).toEqual([[], []])
  log.flush()
  expect(seen[0]).toEqual(seen[1])
  expect(seen[0]).toMatchObject([
    { envelope: { id: 'prod-7001', n: 1 }, owner: null },
    { envelope: { id: 'prod-7002', n: 2 }, owner: 'd1', outline: { envelope: { id: 'prod-7002', n: 3 } } },
  ])
  expect(second.since('prod-7001')).toEqual({ events: [seen[0]?.[1]], missed: 0 })
  expect(second.recent(1)).toEqual([seen[0]?.[1]])
})

test('a client that resumes with an event which the node has not read yet gets no earlier one again', async () => {
  const { log, first } = await twoBuses()
  first.emit(tick(1))
  log.flush()
  expect(first.since('prod-7002')).toEqual({ events: [], missed: 0, ahead: 7_002 })
  // The log started over, which this node has not noticed yet.
  expect(first.since('prod-500000000')).toEqual({ events: [], missed: 0, ahead: 500_000_000 })
  expect(first.since('prod-9000000000')).toMatchObject({ missed: null, events: [{ seq: 7_001 }] })
})

test('observers see the events of their own process at once', async () => {
  const { first, second } = await twoBuses()
  const seen: SluiceEvent[] = []
  first.observe((event) => seen.push(event))
  second.emit(tick(1))
  first.emit(tick(2))
  expect(seen).toEqual([tick(2)])
})

test('numbers that are left out are a gap, also for clients that resume', async () => {
  const { log, first } = await twoBuses()
  const seen: unknown[] = []
  first.subscribe(
    ({ seq }) => seen.push(seq),
    (missed) => seen.push({ missed }),
  )
  first.emit(tick(1))
  log.flush()
  log.drop(3)
  first.emit(tick(2))
  log.flush()
  expect(seen).toEqual([7_001, { missed: 3 }, 7_005])
  expect(first.since('prod-7001')).toMatchObject({ missed: 3, events: [{ seq: 7_005 }] })
  expect(first.since('prod-7000')).toMatchObject({ missed: 4, events: [{ seq: 7_005 }] })
})

test('a log that was lost is a gap of an unknown size', async () => {
  const { log, first } = await twoBuses()
  const gaps: (number | null)[] = []
  first.subscribe(
    () => {},
    (missed) => gaps.push(missed),
  )
  first.emit(tick(1))
  log.flush()
  log.lose(9_000)
  first.emit(tick(2))
  log.flush()
  expect(gaps).toEqual([null])
  expect(first.since('prod-7001')).toMatchObject({ missed: null, events: [{ seq: 9_001 }] })
  expect(first.since('prod-9000')).toMatchObject({ missed: 0, events: [{ seq: 9_001 }] })
})

test('an added event has its id, or is refused when the log drops it', async () => {
  expect(await bus().add(tick(1))).toBe('r1-1')
  const { log, first } = await twoBuses()
  const added = first.add(tick(1))
  log.flush()
  expect(await added).toBe('prod-7001')
  const full = createEventBus({
    clock: testClock(),
    run: 'prod',
    shared: { append: (_, stored) => stored?.(null), follow: async () => {}, catchUp: async () => {} },
  })
  await expect(full.add(tick(1))).rejects.toMatchObject({ code: 'unavailable' })
})

test('the events of other nodes are wanted at once only while somebody subscribes', async () => {
  const shared = testLog(7_000).of(0)
  const bus = createEventBus({ clock: testClock(), run: 'prod', shared })
  await bus.start()
  bus.observe(() => {})
  expect(shared.isWatched()).toBe(false)
  const leave = bus.subscribe(() => {})
  expect(shared.isWatched()).toBe(true)
  leave()
  expect(shared.isWatched()).toBe(false)
})
