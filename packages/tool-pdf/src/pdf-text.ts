/** The service other features read PDFs by. */
import { AppError, type Services } from '@sluice/sdk'
import { parsePageRanges } from './page-ranges.ts'
import type { PdfReader } from './pdf-reader.ts'

/** About two thousand full pages; more would hold up whoever goes on with it. */
const CHARS_MAX = 4_000_000

/** One text for each page asked for, in order. Never a part: more than can be given is refused. */
export const pdfText =
  (reader: PdfReader): Services['pdfText'] =>
  async (pdf, { pages, signal }) => {
    const ranges = pages === undefined ? [] : parsePageRanges(pages)
    const { texts, truncated } = await reader.read(pdf, { ranges, charsMax: CHARS_MAX, signal })
    if (truncated) throw new AppError('invalid_request', `the PDF has more than ${CHARS_MAX} characters of text; ask for fewer pages`)
    return texts.map(({ text, problem }) => (problem === 'broken' ? '[this page is broken and cannot be read]' : text))
  }
