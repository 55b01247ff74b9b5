import { describe, expect, test } from 'vitest'
import { selectPages } from './extract-text.ts'
import { parsePageRanges } from './page-ranges.ts'
import type { PageRange } from './pdf-job.ts'

const range = (first: number, last = first): PageRange => ({ first, last })

describe('page ranges', () => {
  test.each<[string, PageRange[]]>([
    ['7', [range(7)]],
    ['1-3,7', [range(1, 3), range(7)]],
    [' 1 - 3 , 7 ', [range(1, 3), range(7)]],
    ['20-', [range(20, Number.POSITIVE_INFINITY)]],
  ])('parses the page ranges %j', (text, ranges) => {
    expect(parsePageRanges(text)).toEqual(ranges)
  })

  test.each(['', ',', '1,', 'a', '-3', '0', '0-3', '3-1', '1-2-3', '1.5', '1e3', '1,'.repeat(200)])(
    'refuses the malformed page ranges %j',
    (text) => {
      expect(() => parsePageRanges(text)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
    },
  )

  test.each<[ranges: PageRange[], pages: number, selected: number[]]>([
    [[], 3, [1, 2, 3]],
    [[range(3), range(1, 2), range(2)], 3, [1, 2, 3]],
    [[range(2, Number.POSITIVE_INFINITY)], 3, [2, 3]],
    [[range(2, 999_999_999)], 3, [2, 3]],
  ])('selects pages in ascending order and once each: %j of %d', (ranges, pages, selected) => {
    expect(selectPages(ranges, pages)).toEqual(selected)
  })

  test.each<[ranges: PageRange[], pages: number, said: string]>([
    [[range(4)], 3, 'no page 4: the PDF has 3 pages'],
    [[range(2)], 1, 'no page 2: the PDF has 1 page'],
    [[], 0, 'no pages'],
    [[], -1, 'no pages'],
    [[range(1)], 10_001, '10001 pages'],
  ])('refuses pages that the document does not have: %j of %d', (ranges, pages, said) => {
    expect(selectPages(ranges, pages)).toEqual({ refusal: expect.stringContaining(said) })
  })
})
