import { expect, test } from 'vitest'
import { nearestName } from './nearest-names.ts'

const KNOWN = ['port', 'host', 'require_pairing', 'webhook_secret', 'webhook_rate_limit_per_minute']

test.each([
  ['prot', 'port'],
  ['Port', 'port'],
  ['hosts', 'host'],
  ['require-pairing', 'require_pairing'],
  ['requirepairing', 'require_pairing'],
  ['webhok_secert', 'webhook_secret'],
])('suggests the name that a mistyped one resembles: %s', (wrong, meant) => {
  expect(nearestName(wrong, KNOWN)).toBe(meant)
})

test('a shortened name is taken for the shortest one that contains it', () => {
  expect(nearestName('webhook_rate_limit', KNOWN)).toBe('webhook_rate_limit_per_minute')
  expect(nearestName('rate_limit', [...KNOWN, 'pair_rate_limit_per_minute'])).toBe('pair_rate_limit_per_minute')
  expect(nearestName('per', KNOWN)).toBeUndefined()
})

test.each(['x', 'model', 'telegram', 'a'.repeat(1000), ''])('a name that resembles none is taken for none: %.20s', (wrong) => {
  expect(nearestName(wrong, KNOWN)).toBeUndefined()
})
