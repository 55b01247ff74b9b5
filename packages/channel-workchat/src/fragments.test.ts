import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { BYTES_MAX, EVENTS_MAX, Fragments, PARTS_MAX } from './fragments.ts'

const part = (messageId: string, sum: number, seq: number, payload = `${seq}`) => ({ messageId, sum, seq, payload: Buffer.from(payload) })

test('parts are joined in their order, however they arrive, also repeated', () => {
  const fragments = new Fragments(testClock())
  expect(fragments.add(part('a', 3, 2, 'c'))).toBeUndefined()
  expect(fragments.add(part('b', 2, 0, 'x'))).toBeUndefined()
  expect(fragments.add(part('a', 3, 0, 'a'))).toBeUndefined()
  expect(fragments.add(part('a', 3, 0, 'a'))).toBeUndefined()
  expect(String(fragments.add(part('a', 3, 1, 'b')))).toBe('abc')
  expect(fragments.size).toEqual({ events: 1, bytes: 1 })
  expect(String(fragments.add(part('c', 1, 0, 'whole')))).toBe('whole')
})

test('impossible parts are refused', () => {
  const fragments = new Fragments(testClock())
  const impossible = [
    [0, 0],
    [2, 2],
    [2, -1],
    [1.5, 0],
    [Number.NaN, 0],
    [2, Number.NaN],
    [PARTS_MAX + 1, 0],
  ] as const
  for (const [sum, seq] of impossible) expect(() => fragments.add(part('a', sum, seq)), `${seq} of ${sum}`).toThrow(RangeError)
  fragments.add(part('a', 2, 0))
  expect(() => fragments.add(part('a', 3, 1))).toThrow('has 2 parts and not 3')
})

test('incomplete events are bounded in number and bytes; the oldest is dropped', () => {
  const fragments = new Fragments(testClock())
  for (let event = 0; event < EVENTS_MAX + 50; event++) fragments.add(part(`event-${event}`, 2, 0))
  expect(fragments.size.events).toBe(EVENTS_MAX)
  expect(fragments.add(part('event-0', 2, 1))).toBeUndefined()
  const large = new Fragments(testClock())
  for (let event = 0; event < 20; event++) large.add({ ...part(`event-${event}`, 2, 0), payload: Buffer.alloc(1024 * 1024) })
  expect(large.size.bytes).toBeLessThanOrEqual(BYTES_MAX)
})

test('an event that stays incomplete for five minutes is dropped', async () => {
  const clock = testClock()
  const fragments = new Fragments(clock)
  fragments.add(part('old', 2, 0))
  await clock.advance(299_000)
  fragments.add(part('young', 2, 0))
  await clock.advance(2000)
  fragments.add(part('new', 2, 0))
  expect(fragments.size.events).toBe(2)
  expect(String(fragments.add(part('young', 2, 1)))).toBe('01')
})
