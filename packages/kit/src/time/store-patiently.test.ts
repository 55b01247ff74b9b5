import { AppError, type Inbound } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { expect, test } from 'vitest'
import { storePatiently } from './store-patiently.ts'

const inbound: Inbound = { id: 'm-1', account: 'bot', sender: 'ada', to: { to: 'ada' }, text: 'hello' }

test('tries until the message is stored, after growing delays', async () => {
  const host = testHost()
  const times: number[] = []
  const deliver = async () => {
    times.push(host.clock.nowMs())
    if (times.length < 8) throw new AppError('unavailable', 'the disk is full')
  }
  let isDone = false
  const { signal } = new AbortController()
  const stored = storePatiently(host, { channel: 'x', inbound, deliver, signal }).finally(() => {
    isDone = true
  })
  while (!isDone) await host.clock.advance(1000)
  expect(await stored).toBe(true)
  expect(times.slice(1).map((time, index) => time - (times[index] ?? 0))).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000])
})

test('gives up when the channel stops', async () => {
  const abort = new AbortController()
  const deliver = async () => {
    abort.abort()
    throw new AppError('unavailable', 'the disk is full')
  }
  expect(await storePatiently(testHost(), { channel: 'x', inbound, deliver, signal: abort.signal })).toBe(false)
})
