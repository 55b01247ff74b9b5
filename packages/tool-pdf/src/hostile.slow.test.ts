/** PDFs that fill the memory of their reader. */
import { describe, expect, test } from 'vitest'
import { arrange } from './testing/arrange.ts'
import { arrayBomb, deflateBomb } from './testing/bombs.ts'
import { handMade } from './testing/hand-made.ts'

const whole = handMade({ pages: ['one', 'two', 'three'] })

describe('the limits of PDF reading', () => {
  test.each([
    ['a stream that unpacks to 4 GiB', () => deflateBomb(4096)],
    ['a PDF with 20 million arrays', () => arrayBomb(20)],
  ])('refuses %s before memory runs out, and reads the next PDF', async (_, bomb) => {
    const { read, run } = arrange({ files: { 'a.pdf': whole }, realTime: true })
    const refusal = { code: 'invalid_request', message: expect.stringContaining('384 MiB of memory') }
    await expect(read(bomb())).rejects.toMatchObject(refusal)
    expect(await run({ path: 'a.pdf' })).toContain('[page 3]\nthree')
  })

  test('the service refuses too much text, and the tool cuts it', async () => {
    const pdf = handMade({ pages: Array.from({ length: 9 }, () => 'x'.repeat(500_000)) })
    const { read, run } = arrange({ files: { 'a.pdf': pdf } })
    await expect(read(pdf)).rejects.toMatchObject({ code: 'invalid_request', message: expect.stringContaining('fewer pages') })
    expect((await read(pdf, { pages: '1-2' })).map(({ length }) => length)).toEqual([500_000, 500_000])
    expect(await run({ path: 'a.pdf', max_chars: 200_000 })).toMatch(/^\[pages: 9, chars: 199\d{3}, truncated: true]/)
  })
})
