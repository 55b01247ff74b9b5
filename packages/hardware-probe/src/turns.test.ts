import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { createTurns } from './turns.ts'

const { signal } = new AbortController()

test('work runs one after the other, in the order it came, after failures too', async () => {
  const inTurn = createTurns()
  const log: string[] = []
  const work = (name: string, fails = false) =>
    inTurn(signal, async () => {
      log.push(`${name} starts`)
      await setImmediate()
      log.push(`${name} ends`)
      if (fails) throw new Error(name)
    })
  await Promise.allSettled([work('a'), work('b', true), work('c')])
  expect(log).toEqual(['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
})

test('what is aborted while it waits ends at once and never runs, and those after it do', async () => {
  const inTurn = createTurns()
  const first = Promise.withResolvers<void>()
  const abort = new AbortController()
  const running = inTurn(signal, () => first.promise)
  const aborted = inTurn(abort.signal, () => Promise.reject(new Error('it ran')))
  const later = inTurn(signal, async () => 'ran')
  abort.abort()
  await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
  first.resolve()
  await running
  expect(await later).toBe('ran')
})

test('no more than sixteen wait', async () => {
  const inTurn = createTurns()
  const first = Promise.withResolvers<void>()
  const waiting = Array.from({ length: 16 }, () => inTurn(signal, () => first.promise))
  await expect(inTurn(signal, () => first.promise)).rejects.toMatchObject({ code: 'unavailable' })
  first.resolve()
  await Promise.all(waiting)
  await inTurn(signal, async () => undefined)
})
