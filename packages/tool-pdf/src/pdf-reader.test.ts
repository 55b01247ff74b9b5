import { setImmediate as nextTick } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { arrange } from './testing/arrange.ts'
import { endlessForms } from './testing/bombs.ts'
import { handMade } from './testing/hand-made.ts'

const pdf = handMade()
const workers = (): number => (process.report.getReport() as { workers: unknown[] }).workers.length

describe('PdfReader', () => {
  test('runs one worker for all PDFs and ends it when idle', async () => {
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

  test('an abort ends a running read at once, and the next PDF is read', async () => {
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

  test('an abort before the worker starts lets the next PDF be read', async () => {
    const { read } = arrange()
    const abort = new AbortController()
    const running = read(endlessForms(), { signal: abort.signal })
    const next = read(pdf)
    await nextTick()
    abort.abort()
    await expect(running).rejects.toMatchObject({ code: 'aborted' })
    expect(await next).toEqual(['hello'])
  })

  test('an abort ends the wait in the queue', async () => {
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

  test('refuses a PDF while 32 others are queued', async () => {
    const { read, close } = arrange()
    const reads = Array.from({ length: 32 }, () => read(pdf))
    await expect(read(pdf)).rejects.toMatchObject({ code: 'unavailable', retryAfterSecs: 5 })
    expect(await Promise.all(reads)).toHaveLength(32)
    expect(await read(pdf)).toEqual(['hello'])
    await close()
  })

  test('close ends the running and the queued reads, and may be called twice', async () => {
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

  test('leaves only the idle timer behind after a read, and none after close', async () => {
    const { read, host, close } = arrange()
    await read(pdf)
    expect(host.clock.sleeping).toBe(1)
    await close()
    expect(host.clock.sleeping).toBe(0)
  })
})
