import { describe, expect, test } from 'vitest'
import { requireShownHash } from './shown-hash.ts'

const PRESENT = 'a1'.repeat(32)
const given = (hash: string) => () => requireShownHash({ given: hash, present: PRESENT, name: 'skills/tidy', lookAgain: "'look'" })

describe('an acceptance needs the whole hash of the shown content', () => {
  test('the same hash is accepted', () => {
    expect(given(PRESENT)).not.toThrow()
  })

  test.each([0, 1, 8, 16, 32, 63])('the first %i digits are refused', (digits) => {
    expect(given(PRESENT.slice(0, digits))).toThrow("is not a whole SHA-256 hash of 64 digits. Copy all of the hash that 'look' shows")
  })

  test.each([`${PRESENT}0`, PRESENT.toUpperCase(), ` ${PRESENT}`, `${PRESENT}\n`, 'g'.repeat(64)])('%j is refused', (hash) => {
    expect(given(hash)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  test('a hash that differs in its last digit is refused, and the present hash is not named', () => {
    const other = given(`${PRESENT.slice(0, -1)}0`)
    expect(other).toThrow(expect.objectContaining({ code: 'conflict', message: expect.not.stringContaining(PRESENT) }))
  })
})
