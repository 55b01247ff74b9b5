import { AppError } from '@sluice/sdk'
import { testClock } from '@sluice/testkit/clock'
import { expect, test } from 'vitest'
import { sendParts } from './send-parts.ts'

const { signal } = new AbortController()
const sent: string[] = []
const part =
  (name: string, ...errors: AppError[]) =>
  async () => {
    const error = errors.shift()
    if (error) throw error
    sent.push(name)
    return { id: name }
  }
const busy = (retryAfterSecs: number) => new AppError('rate_limited', 'busy', { retryAfterSecs })

test('sends the parts in order, returns the first, and waits for short rate limits of later ones', async () => {
  const clock = testClock()
  sent.length = 0
  const sending = sendParts([part('a'), part('b', busy(5), busy(5)), part('c')], { clock, signal })
  for (let second = 0; second < 12; second++) await clock.advance(1000)
  expect(await sending).toEqual({ id: 'a' })
  expect(sent).toEqual(['a', 'b', 'c'])
})

test.each([
  ['a long rate limit', [busy(60)]],
  ['a third rate limit', [busy(1), busy(1), busy(1)]],
  ['a refusal', [new AppError('invalid_request', 'no')]],
])('a later part with %s is upstream, so that the first is not sent again', async (_, errors) => {
  const clock = testClock()
  const sending = sendParts([part('a'), part('b', ...errors)], { clock, signal }).catch((error: unknown) => error)
  for (let second = 0; second < 5; second++) await clock.advance(1000)
  expect(await sending).toMatchObject({ code: 'upstream' })
})

test('a failure of the first part is thrown as it is, and a message without parts is refused', async () => {
  const clock = testClock()
  await expect(sendParts([part('a', busy(60))], { clock, signal })).rejects.toMatchObject({ code: 'rate_limited' })
  await expect(sendParts([], { clock, signal })).rejects.toMatchObject({ code: 'invalid_request' })
})
