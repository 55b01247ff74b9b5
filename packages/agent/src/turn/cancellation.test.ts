import { AppError } from '@sluice/sdk'
import { expect, test } from 'vitest'
import { Cancellation } from './cancellation.ts'

const reason = new AppError('aborted', 'enough')

test('waiters receive the reason, also when the work rejects by the signal', async () => {
  const cancellation = new Cancellation()
  const work = new Promise((_, reject) => cancellation.signal.addEventListener('abort', () => reject(new Error('AbortError'))))
  const raced = cancellation.race(work)
  cancellation.cancel(reason)
  await expect(raced).rejects.toBe(reason)
  expect(cancellation.signal.reason).toBe(reason)
})

test('work that ignores the signal does not block waiters', async () => {
  const cancellation = new Cancellation()
  const raced = cancellation.race(new Promise(() => undefined))
  cancellation.cancel(reason)
  await expect(raced).rejects.toBe(reason)
})

test('a cancelled race rejects at once with the first reason', async () => {
  const cancellation = new Cancellation()
  cancellation.cancel(reason)
  cancellation.cancel(new AppError('unavailable', 'later'))
  await expect(cancellation.race(Promise.resolve(1))).rejects.toBe(reason)
  expect(() => cancellation.throwIfCancelled()).toThrow(reason)
})

test('work that settles first gives its result', async () => {
  const cancellation = new Cancellation()
  await expect(cancellation.race(Promise.resolve(1))).resolves.toBe(1)
  await expect(cancellation.race(Promise.reject(new Error('own')))).rejects.toThrow('own')
})
