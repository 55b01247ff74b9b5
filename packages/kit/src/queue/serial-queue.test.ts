import { describe, expect, test } from 'vitest'
import { SerialQueue } from './serial-queue.ts'

const queueOf = (tasksMax = 8) => new SerialQueue({ name: 'the printer', tasksMax, refusal: 'rate_limited', retryAfterSecs: 7 })

describe('a serial queue', () => {
  test('runs one task at a time, in order, also after a task has failed', async () => {
    const queue = queueOf()
    const log: string[] = []
    const task = (name: string, fails = false) =>
      queue.run(async () => {
        log.push(`${name} starts`)
        await new Promise((resolve) => setImmediate(resolve))
        log.push(`${name} ends`)
        if (fails) throw new Error(name)
        return name
      })
    const results = await Promise.allSettled([task('a'), task('b', true), task('c')])
    expect(log).toEqual(['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(queue.isIdle).toBe(true)
  })

  test('starts a task at once when it is idle', () => {
    let hasStarted = false
    void queueOf().run(async () => {
      hasStarted = true
    })
    expect(hasStarted).toBe(true)
  })

  test('never runs a task whose signal aborts while it waits, and keeps the order', async () => {
    const queue = queueOf()
    const first = Promise.withResolvers<void>()
    const log: string[] = []
    const running = queue.run(() => first.promise)
    const abort = new AbortController()
    const aborted = queue.run(async () => log.push('aborted task'), abort.signal)
    const later = queue.run(async () => log.push('later task'))
    abort.abort()
    await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
    await new Promise((resolve) => setImmediate(resolve))
    expect(log).toEqual([])
    first.resolve()
    await Promise.all([running, later])
    expect(log).toEqual(['later task'])
    await expect(queue.run(async () => log.push('never'), AbortSignal.abort())).rejects.toMatchObject({ code: 'aborted' })
  })

  test('refuses a task beyond its bound with the code and the time it was given', async () => {
    const queue = queueOf(2)
    const first = Promise.withResolvers<void>()
    const accepted = [queue.run(() => first.promise), queue.run(async () => undefined)]
    await expect(queue.run(async () => undefined)).rejects.toMatchObject({ code: 'rate_limited', retryAfterSecs: 7 })
    first.resolve()
    await Promise.all(accepted)
    await expect(queue.run(async () => 'again')).resolves.toBe('again')
  })
})
