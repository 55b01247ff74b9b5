/** Which pages of a document some ranges mean. Runs in the worker, where the number of pages is known. */
import type { PageRange, Refusal } from './pdf-job.ts'

/** More pages than any book has; beyond it, looking them up takes longer than reading them. */
const PAGES_MAX = 10_000

/** Ascending, each once. A range may end beyond the document, but not begin there. */
export function selectPages(ranges: readonly PageRange[], pages: number): number[] | Refusal {
  if (pages <= 0) return { refusal: 'the PDF is broken: it has no pages that could be found' }
  if (pages > PAGES_MAX) return { refusal: `the PDF has ${pages} pages, more than the ${PAGES_MAX} that can be dealt with` }
  const beyond = ranges.find(({ first }) => first > pages)
  if (beyond) return { refusal: `there is no page ${beyond.first}: the PDF has ${pages} ${pages === 1 ? 'page' : 'pages'}` }
  const wanted = ranges.length === 0 ? [{ first: 1, last: pages }] : ranges
  const found = new Set<number>()
  for (const { first, last } of wanted) {
    for (let page = first; page <= Math.min(last, pages); page++) found.add(page)
  }
  return [...found].sort((a, b) => a - b)
}
