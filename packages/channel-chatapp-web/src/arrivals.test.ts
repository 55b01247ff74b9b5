import type { BinaryNode } from '@whiskeysockets/baileys'
import { expect, test } from 'vitest'
import { ARRIVALS_MAX, Arrivals } from './arrivals.ts'

const stanza = (): BinaryNode => ({ tag: 'message', attrs: {} })

test('later messages wait for the first one that is being decrypted, until all of its contents are', () => {
  const arrivals = new Arrivals(() => 0)
  const [one, two] = [stanza(), stanza()]
  arrivals.add(one, 'a', 2)
  arrivals.add(two, 'b', 1)
  arrivals.done(two)
  expect(arrivals.first).toBe('a')
  arrivals.done(one)
  expect(arrivals.first).toBe('a')
  arrivals.done(one)
  expect(arrivals.first).toBeUndefined()
})

test('they wait 5 s at most', () => {
  let nowMs = 0
  const arrivals = new Arrivals(() => nowMs)
  arrivals.add(stanza(), 'a', 1)
  arrivals.add(stanza(), 'b', 1)
  expect(arrivals.first).toBe('a')
  nowMs = 4999
  expect(arrivals.first).toBe('a')
  nowMs = 5000
  expect(arrivals.first).toBe('b')
})

test('the number of messages that are tracked is bounded', () => {
  const arrivals = new Arrivals(() => 0)
  for (let count = 0; count < ARRIVALS_MAX; count++) arrivals.add(stanza(), 'a', 1)
  const beyond = stanza()
  arrivals.add(beyond, '0', 1)
  arrivals.done(beyond)
  expect(arrivals.first).toBe('a')
})
