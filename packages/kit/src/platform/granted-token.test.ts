import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { SharedToken } from './granted-token.ts'

const { signal } = new AbortController()

function bench(lastsSecs = 7200) {
  const clock = testClock()
  let requests = 0
  const token = new SharedToken(clock, async () => {
    requests += 1
    return { token: `token-${requests}`, lastsSecs }
  })
  return { clock, token, requests: () => requests }
}

test('callers at the same time share one request', async () => {
  const { token, requests } = bench()
  expect(await Promise.all([token.current(signal), token.current(signal), token.current(signal)])).toEqual(Array(3).fill('token-1'))
  expect(await token.current(signal)).toBe('token-1')
  expect(requests()).toBe(1)
})

test('a token is renewed a minute before it ends, and a short one at half of its time', async () => {
  const { token, clock } = bench()
  await token.current(signal)
  await clock.advance(7_139_000)
  expect(await token.current(signal)).toBe('token-1')
  await clock.advance(1000)
  expect(await token.current(signal)).toBe('token-2')
  const short = bench(10)
  await short.token.current(signal)
  await short.clock.advance(5000)
  expect(await short.token.current(signal)).toBe('token-2')
})

test('a rejected token is replaced once, and not the newer one of another caller', async () => {
  const { token, requests } = bench()
  const used: string[] = []
  const attempt = async (each: string) => {
    used.push(each)
    return each
  }
  expect(await token.use(signal, attempt, (answer) => answer === 'token-1')).toBe('token-2')
  expect(await token.use(signal, attempt, () => true)).toBe('token-3')
  expect(used).toEqual(['token-1', 'token-2', 'token-2', 'token-3'])
  const both = await Promise.all([1, 2].map(() => token.use(signal, attempt, (answer) => answer === 'token-3')))
  expect(both).toEqual(['token-4', 'token-4'])
  expect(requests()).toBe(4)
})

test('a failed request is not kept, and an abort ends only the wait of its caller', async () => {
  let isDown = true
  const answered = Promise.withResolvers<void>()
  const token = new SharedToken(testClock(), async () => {
    await answered.promise
    if (isDown) throw new AppError('unavailable', 'down')
    return { token: 'token', lastsSecs: 60 }
  })
  const abort = new AbortController()
  const aborted = token.current(abort.signal)
  const failed = token.current(signal)
  abort.abort()
  await expect(aborted).rejects.toMatchObject({ code: 'aborted' })
  answered.resolve()
  await expect(failed).rejects.toThrow('down')
  isDown = false
  expect(await token.current(signal)).toBe('token')
})

test('an empty token is unavailable', async () => {
  const token = new SharedToken(testClock(), async () => ({ token: '', lastsSecs: 60 }))
  await expect(token.current(signal)).rejects.toMatchObject({ code: 'unavailable' })
})
