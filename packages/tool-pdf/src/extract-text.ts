/** The text of a PDF by the library, page by page. Runs in the worker; takes as long and as much memory as the file makes it. */
import type { getDocumentProxy } from 'unpdf'
import { PAGE_MARK_CHARS, type PageText, type PdfAnswer, type PdfJob } from './pdf-job.ts'
import { selectPages } from './select-pages.ts'

type OpenDocument = typeof getDocumentProxy
type PdfDocument = Awaited<ReturnType<OpenDocument>>

/** Pages on their way at the same time: the library waits for itself between the steps of each. */
const PAGES_AT_ONCE = 8
const ERRORS_ONLY = 0

/** Never rejects for what is in the file: everything the library throws of it is a refusal. */
export async function extractText(job: PdfJob, openDocument: OpenDocument): Promise<PdfAnswer> {
  let document: PdfDocument
  try {
    document = await openDocument(job.bytes, { verbosity: ERRORS_ONLY })
  } catch (error) {
    return openingRefusal(error)
  }
  try {
    const wanted = selectPages(job.ranges, document.numPages)
    if (!Array.isArray(wanted)) return wanted
    return await readPages(document, wanted, job.charsMax)
  } finally {
    await document.loadingTask.destroy()
  }
}

async function readPages(document: PdfDocument, wanted: readonly number[], charsMax: number): Promise<PdfAnswer> {
  const texts: PageText[] = []
  let room = charsMax
  for (let at = 0; at < wanted.length; at += PAGES_AT_ONCE) {
    const read = await Promise.allSettled(wanted.slice(at, at + PAGES_AT_ONCE).map((page) => readPage(document, page)))
    for (const [index, outcome] of read.entries()) {
      const page = wanted[at + index] ?? 0
      if (outcome.status === 'rejected') {
        return { refusal: `page ${page} of the PDF is broken and cannot be read; other pages may be`, cause: String(outcome.reason) }
      }
      const text = outcome.value
      if (texts.length > 0) room -= PAGE_MARK_CHARS
      if (text.length > room) {
        texts.push({ page, text: text.slice(0, Math.max(0, room)).toWellFormed() })
        return { pages: document.numPages, texts, truncated: true }
      }
      texts.push({ page, text })
      room -= text.length
    }
  }
  return { pages: document.numPages, texts, truncated: false }
}

async function readPage(document: PdfDocument, number: number): Promise<string> {
  const page = await document.getPage(number)
  const { items } = await page.getTextContent()
  const text = items.map((item) => ('str' in item ? item.str + (item.hasEOL ? '\n' : '') : '')).join('')
  // Fonts map to anything, NUL and escape sequences included.
  return text
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .toWellFormed()
    .trimEnd()
}

function openingRefusal(error: unknown): PdfAnswer {
  const cause = String(error)
  if (/password|encrypt/i.test(cause)) return { refusal: 'the PDF is encrypted; a copy that opens without a password can be read', cause }
  return { refusal: 'the PDF is broken or cut short: it cannot be opened', cause }
}
