import { memoryCounters } from '@sluice/kit'
import { testClock } from '@sluice/testkit/clock'
import { describe, expect, test } from 'vitest'
import { testGateways } from './testing.ts'

const gateways = testGateways()

/** Two processes whose stores share their counters, as the nodes of a cluster do. */
const twoGateways = (config: object) => {
  const counters = memoryCounters(testClock())
  return [gateways({ counters, config }), gateways({ counters, config })] as const
}

describe('two processes with the counters of one store', () => {
  test('share the rate limit of an address', async () => {
    const [first, second] = twoGateways({ webhook_rate_limit_per_minute: 2, require_pairing: false })
    const init = { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"message":"hi"}' }
    const call = async (gateway: typeof first) => (await gateway.request('/webhook', init)).status
    expect([await call(first), await call(second), await call(first), await call(second)]).toEqual([200, 200, 429, 429])
    expect(first.turns.length + second.turns.length).toBe(2)
  })

  test('share the lockout after wrong pairing codes', async () => {
    const [first, second] = twoGateways({ pair_rate_limit_per_minute: 0 })
    const guess = async (gateway: typeof first) =>
      (await gateway.request('/pair', { method: 'POST', headers: { 'X-Pairing-Code': '000000' } })).status
    for (let guesses = 0; guesses < 5; guesses++) expect(await guess(guesses % 2 === 0 ? first : second)).toBe(403)
    expect([await guess(first), await guess(second)]).toEqual([429, 429])
  })

  test('share the lockout after wrong tokens', async () => {
    const [first, second] = twoGateways({ require_pairing: true })
    const guess = ({ auth }: typeof first) =>
      expect(async () => auth.bearer(new Headers({ Authorization: 'Bearer wrong' }), 'a', false)).rejects
    for (let guesses = 0; guesses < 10; guesses++) await guess(guesses % 2 === 0 ? first : second).toMatchObject({ code: 'unauthorized' })
    for (const gateway of [first, second]) await guess(gateway).toMatchObject({ code: 'rate_limited' })
  })
})
