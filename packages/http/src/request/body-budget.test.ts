import { expect, test } from 'vitest'
import { BodyBudget } from './body-budget.ts'

const refused = expect.objectContaining({ code: 'unavailable', retryAfterSecs: 5 })

/** A body that has taken this many bytes; `isEvicted` returns whether it was evicted. */
function body(budget: BodyBudget, bytes: number, { channel = 'a', peer = 'p' } = {}) {
  const room = budget.open(channel, peer)
  let isEvicted = false
  room.onEvicted(() => {
    isEvicted = true
  })
  room.take(bytes)
  return Object.assign(room, { isEvicted: () => isEvicted })
}

test('bounds finished bodies over all channels until they are released', () => {
  const budget = new BodyBudget(200)
  const [one, two] = [body(budget, 100, { channel: 'a' }), body(budget, 90, { channel: 'b' })]
  one.complete()
  two.complete()
  expect(() => body(budget, 11, { channel: 'c' })).toThrow(refused)
  one.release()
  one.release()
  body(budget, 100, { channel: 'c' }).release()
  body(budget, 10, { channel: 'b' })
})

test('gives one channel at most half of the room', () => {
  const budget = new BodyBudget(200)
  const full = body(budget, 100, { channel: 'a' })
  full.complete()
  expect(() => body(budget, 1, { channel: 'a' })).toThrow(refused)
  body(budget, 100, { channel: 'b' })
})

test('takes no room for a body that was announced but did not arrive', () => {
  const budget = new BodyBudget(100)
  for (let n = 0; n < 1000; n++) budget.open('a', 'p')
  body(budget, 50)
})

test('evicts the oldest unfinished body of an address first', () => {
  const budget = new BodyBudget(200)
  const held = [1, 2, 3, 4].map(() => body(budget, 25))
  const later = body(budget, 30)
  expect(held.map((room) => room.isEvicted())).toEqual([true, true, false, false])
  expect(() => held[0]?.take(1)).toThrow(refused)
  held[0]?.release()
  expect(later.isEvicted()).toBe(false)
})

test('evicts a body of the address that holds the most bytes', () => {
  const budget = new BodyBudget(200)
  const provider = body(budget, 10, { peer: 'provider' })
  const strangers = [1, 2, 3].map(() => body(budget, 30, { peer: 'stranger' }))
  body(budget, 20, { peer: 'another' })
  expect([provider, ...strangers].map((room) => room.isEvicted())).toEqual([false, true, false, false])
})

test('evicts only bodies of the channel that is full', () => {
  const budget = new BodyBudget(200)
  const other = body(budget, 90, { channel: 'b' })
  const own = body(budget, 100, { channel: 'a' })
  body(budget, 50, { channel: 'a' })
  expect([other.isEvicted(), own.isEvicted()]).toEqual([false, true])
})
