import { describe, expect, test } from 'vitest'
import { landlockCalls } from './landlock.ts'

const MACHINE = { openat: 257 }
const rights = (abi: number, network = false) => {
  const [ruleset, ...rest] = landlockCalls(MACHINE, abi, [], { writable: ['/w'], network }, 3)
  const [attributes, size, flags] = ruleset?.args ?? []
  if (typeof attributes !== 'object' || !('bytes' in attributes)) throw new Error('The ruleset has no attributes')
  const words = Array.from({ length: attributes.bytes.length / 8 }, (_, index) => Buffer.from(attributes.bytes).readBigUInt64LE(index * 8))
  return { words: words.map(Number), size, flags, rest }
}

describe('landlockCalls', () => {
  test.each([
    [1, [0x1fff]],
    [2, [0x3fff]],
    [3, [0x7fff]],
    [4, [0x7fff, 3]],
    [5, [0xffff, 3]],
    [6, [0xffff, 3, 3]],
    [7, [0xffff, 3, 3]],
    [99, [0xffff, 3, 3]],
  ])('gives version %i a structure of its size with the rights that it knows', (abi, words) => {
    expect(rights(abi)).toMatchObject({ words, size: words.length * 8, flags: 0 })
  })

  test('restricts no network right if the network is allowed', () => {
    expect(rights(7, true).words).toEqual([0xffff, 0, 3])
  })

  test('gives a writable folder all rights except to create and control devices', () => {
    const rule = rights(7).rest.find(({ name }) => name === 'landlock_add_rule')
    expect(rule).toMatchObject({ failing: 'must', args: [{ result: 3 }, 1, { followedBy: 4 }, 0] })
    const attribute = rule?.args[2]
    if (typeof attribute !== 'object' || !('bytes' in attribute)) throw new Error('no rights')
    expect(Number(Buffer.from(attribute.bytes).readBigUInt64LE())).toBe(0xffff & ~(1 << 6) & ~(1 << 11) & ~(1 << 15))
  })

  test('gives a file no rights of folders, and skips a path that is missing', () => {
    const shown = [{ path: '/f', rights: 0b1100, isFolder: false }]
    const [, open, rule] = landlockCalls(MACHINE, 1, shown, { writable: [], network: false }, 0)
    expect([open?.failing, rule?.failing]).toEqual(['may', 'may'])
    const attribute = rule?.args[2]
    if (typeof attribute !== 'object' || !('bytes' in attribute)) throw new Error('no rights')
    expect(Number(Buffer.from(attribute.bytes).readBigUInt64LE())).toBe(0b100)
  })
})
