import { AppError } from '@sluice/sdk'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { IMAGE_BYTES_MAX, uf2Target } from './flash-uf2.ts'
import { parseUf2 } from './parse-uf2.ts'
import { type Uf2Fields, uf2Image } from './testing/uf2-image.ts'

const target = uf2Target()
const parse = (image: Uint8Array) => parseUf2(image, target)

describe('parseUf2', () => {
  test('accepts an image for the board, in any order of addresses', () => {
    expect(parse(uf2Image(3))).toEqual({ blocks: 3, bytes: 768 })
    expect(parse(uf2Image(3, (block) => ({ address: 0x10000200 - block * 256 })))).toEqual({ blocks: 3, bytes: 768 })
    expect(parse(uf2Image(8192))).toMatchObject({ blocks: 8192 })
  })

  const second =
    (fields: Uf2Fields) =>
    (block: number): Uf2Fields =>
      block === 1 ? fields : {}

  test.each<[what: string, fields: Uf2Fields, says: string]>([
    ['no first magic number', { first: 0 }, 'magic'],
    ['no second magic number', { second: 0 }, 'magic'],
    ['no end magic number', { end: 0 }, 'magic'],
    ['another chip', { family: 0xe48bff59 }, 'another chip'],
    ['no chip', { flags: 0 }, 'does not name its chip'],
    ['a block that is not for flash', { flags: 0x2001 }, 'not meant for flash'],
    ['RAM', { address: 0x20000000 }, 'outside'],
    ['an address after flash', { address: 0x10200000 }, 'outside'],
    ['an address before flash', { address: 0x0fffff00 }, 'outside'],
    ['half a page', { address: 0x10000180 }, 'start of a page'],
    ['the same page', { address: 0x10000000 }, 'a second time'],
    ['a short payload', { size: 100 }, '100 bytes'],
    ['a payload longer than its block', { size: 0xffffffff }, 'carries'],
    ['another number', { number: 2 }, 'is numbered 2 of 3'],
    ['another count', { count: 4 }, 'of 4'],
  ])('refuses an image with one wrong block: %s', (_, fields, says) => {
    expect(() => parse(uf2Image(3, second(fields)))).toThrow(
      expect.objectContaining({ code: 'invalid_request', message: expect.stringContaining(says) }),
    )
  })

  test.each([
    ['an empty file', Buffer.alloc(0)],
    ['half a block', uf2Image(2).subarray(0, 700)],
    ['a part of the blocks', uf2Image(4).subarray(0, 1024)],
    ['more than fits', Buffer.alloc(IMAGE_BYTES_MAX + 512)],
  ])('refuses %s', (_, image) => {
    expect(() => parse(image)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  })

  test('throws no unexpected error for arbitrary bytes', () => {
    const damaged = fc.tuple(fc.nat(3 * 512 - 1), fc.nat(255), fc.nat(3 * 512)).map(([at, value, length]) => {
      const image = uf2Image(3)
      image[at] = value
      return image.subarray(0, length)
    })
    fc.assert(
      fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 2048 })), (image) => {
        try {
          expect(parse(image).bytes).toBeLessThanOrEqual(768)
        } catch (error) {
          expect(error).toBeInstanceOf(AppError)
        }
      }),
      { numRuns: 500 },
    )
  })
})
