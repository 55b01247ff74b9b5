import type { SluiceEvent } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type BusEvent, createEventBus } from './event-bus.ts'
import type { EventRelay, RelayedEvent } from './event-relay.ts'

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

test('an event of another process gets an id of this one, and is relayed once', () => {
  const subscribers: ((event: RelayedEvent) => void)[][] = [[], []]
  const relayOf = (own: number): EventRelay => ({
    publish(event) {
      for (const receive of subscribers[1 - own] ?? []) receive(event)
    },
    subscribe(receive) {
      subscribers[own]?.push(receive)
      return () => {}
    },
  })
  const [first, second] = [0, 1].map((own) => createEventBus({ clock: testClock(), run: `r${own}`, relay: relayOf(own) }))
  if (!first || !second) throw new Error('there are two buses')
  const seen: BusEvent[] = []
  second.subscribe((event) => seen.push(event))
  second.emit(tick(1))
  first.emit(tick(2), 'd1', tick(3))
  expect(seen).toMatchObject([
    { envelope: { id: 'r1-1', n: 1 }, owner: null, isForeign: false },
    { envelope: { id: 'r1-2', n: 2 }, owner: 'd1', isForeign: true, outline: { envelope: { id: 'r1-2', n: 3 } } },
  ])
  expect(first.recent(9)).toMatchObject([
    { envelope: { n: 1 }, isForeign: true },
    { envelope: { n: 2 }, isForeign: false },
  ])
})
