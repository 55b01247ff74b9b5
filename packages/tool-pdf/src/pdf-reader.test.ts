import { setImmediate as nextRound } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { arrange } from './testing/arrange.ts'
import { endlessForms } from './testing/bombs.ts'
import { handMade } from './testing/hand-made.ts'

const pdf = handMade()
const workers = (): number => (process.report.getReport() as { workers: unknown[] }).workers.length

test('a worker is there only while it is needed', async () => {
  const before = workers()
  const { read, host } = arrange()
  expect(workers()).toBe(before)
  await Promise.all([read(pdf), read(pdf), read(pdf)])
  expect(workers()).toBe(before + 1)
  await host.advance(29_999)
  expect(workers()).toBe(before + 1)
  await read(pdf)
  await host.advance(29_999)
  expect(workers()).toBe(before + 1)
  await host.advance(1)
  await expect.poll(workers).toBe(before)
  expect(await read(pdf)).toEqual(['hello'])
})

test('an abort ends what runs at once, and what follows is read', async () => {
  const { read, host, whileReading } = arrange()
  const abort = new AbortController()
  const running = read(endlessForms(), { signal: abort.signal })
  const next = read(pdf)
  await whileReading()
  abort.abort()
  await expect(running).rejects.toMatchObject({ code: 'aborted' })
  expect(await next).toEqual(['hello'])
  await host.advance(20_000)
  expect(await read(pdf)).toEqual(['hello'])
})

test('an abort before the worker has begun leaves the turn to the next', async () => {
  const { read } = arrange()
  const abort = new AbortController()
  const running = read(endlessForms(), { signal: abort.signal })
  const next = read(pdf)
  await nextRound()
  abort.abort()
  await expect(running).rejects.toMatchObject({ code: 'aborted' })
  expect(await next).toEqual(['hello'])
})

test('an abort ends the wait for a turn', async () => {
  const { read } = arrange()
  const [first, second] = [new AbortController(), new AbortController()]
  const running = read(endlessForms(), { signal: first.signal })
  const waiting = read(pdf, { signal: second.signal })
  second.abort()
  await expect(waiting).rejects.toMatchObject({ code: 'aborted' })
  first.abort()
  await expect(running).rejects.toMatchObject({ code: 'aborted' })
  await expect(read(pdf, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'aborted' })
})

test('no more than thirty-two wait', async () => {
  const { read, close } = arrange()
  const reads = Array.from({ length: 32 }, () => read(pdf))
  await expect(read(pdf)).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 5 })
  expect(await Promise.all(reads)).toHaveLength(32)
  expect(await read(pdf)).toEqual(['hello'])
  await close()
})

test('closing ends what runs and what waits, for good and as often as it is asked for', async () => {
  const before = workers()
  const { read, close, whileReading } = arrange()
  await read(pdf)
  const ended = [read(endlessForms()), read(pdf)].map((reading) => expect(reading).rejects.toMatchObject({ code: 'unavailable' }))
  await whileReading()
  await close()
  await Promise.all(ended)
  await expect(read(pdf)).rejects.toMatchObject({ code: 'unavailable' })
  await close()
  await expect.poll(workers).toBe(before)
})

test('nothing stays asleep once a PDF is read, but the wait for the next', async () => {
  const { read, host, close } = arrange()
  await read(pdf)
  expect(host.clock.sleeping).toBe(1)
  await close()
  expect(host.clock.sleeping).toBe(0)
})
