import type { Raw, Verified } from '@sluice/sdk/webhook'
import { expect, test } from 'vitest'
import { LINE_SECRET } from './testing/section.ts'
import { lineRequest } from './testing/vectors.ts'
import { createWebhook } from './webhook.ts'

const NOW_MS = 1_767_225_600_000
const HOUR_MS = 3_600_000
const verify = async (raw: Raw, secret = LINE_SECRET): Promise<Verified> =>
  createWebhook({ secret, groupPolicy: 'open', groupSenders: undefined }).verify(raw)

/** A signed request with events of these ages. */
function request(...hours: readonly number[]): Raw {
  const events = hours.map((age) => ({ type: 'message', timestamp: NOW_MS - age * HOUR_MS }))
  const { headers = [], body } = lineRequest(new TextEncoder().encode(JSON.stringify({ destination: 'U1', events })))
  const lower = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]))
  return { headers: lower, body: body as Uint8Array, url: new URL('http://localhost/line'), receivedAtMs: NOW_MS }
}

test.each([[[0]], [[71]], [[71.1, 3]], [[]]])('a request with events of %j hours is accepted', async (hours) => {
  expect(await verify(request(...hours))).toEqual({ by: 'x-line-signature' })
})

test.each([[[71.1]], [[100, 72]]])('a request with events of %j hours is refused, because its messages may be forgotten', async (hours) => {
  await expect(verify(request(...hours))).rejects.toMatchObject({ code: 'unauthorized' })
})

test('without a secret no time is trusted', async () => {
  expect((await verify(request(100), '')).by).toContain('nothing')
})
