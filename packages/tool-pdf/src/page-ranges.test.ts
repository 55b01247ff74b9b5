import { expect, test } from 'vitest'
import { parsePageRanges } from './page-ranges.ts'
import type { PageRange } from './pdf-job.ts'
import { selectPages } from './select-pages.ts'

const range = (first: number, last = first): PageRange => ({ first, last })

test.each<[string, PageRange[]]>([
  ['7', [range(7)]],
  ['1-3,7', [range(1, 3), range(7)]],
  [' 1 - 3 , 7 ', [range(1, 3), range(7)]],
  ['20-', [range(20, Number.POSITIVE_INFINITY)]],
])('pages as people write them: %s', (text, ranges) => {
  expect(parsePageRanges(text)).toEqual(ranges)
})

test.each(['', ',', '1,', 'a', '-3', '0', '0-3', '3-1', '1-2-3', '1.5', '1e3', '1,'.repeat(200)])(
  'what is no list of pages is refused: %j',
  (text) => {
    expect(() => parsePageRanges(text)).toThrow(expect.objectContaining({ code: 'invalid_request' }))
  },
)

test.each<[ranges: PageRange[], pages: number, selected: number[]]>([
  [[], 3, [1, 2, 3]],
  [[range(3), range(1, 2), range(2)], 3, [1, 2, 3]],
  [[range(2, Number.POSITIVE_INFINITY)], 3, [2, 3]],
  [[range(2, 999_999_999)], 3, [2, 3]],
])('pages come ascending, each once, as far as there are any: %j of %d', (ranges, pages, selected) => {
  expect(selectPages(ranges, pages)).toEqual(selected)
})

test.each<[ranges: PageRange[], pages: number, said: string]>([
  [[range(4)], 3, 'no page 4: the PDF has 3 pages'],
  [[range(2)], 1, 'no page 2: the PDF has 1 page'],
  [[], 0, 'no pages'],
  [[], -1, 'no pages'],
  [[range(1)], 10_001, '10001 pages'],
])('what the document does not have is refused: %j of %d', (ranges, pages, said) => {
  expect(selectPages(ranges, pages)).toEqual({ refusal: expect.stringContaining(said) })
})
