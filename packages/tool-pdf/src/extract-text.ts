/** The text of a PDF by the library, page by page. Runs in the worker; takes as long and as much memory as the file makes it. */
import type { getDocumentProxy } from 'unpdf'
import { joinItems } from './join-items.ts'
import { PAGE_MARK_CHARS, type PageText, type PdfAnswer, type PdfJob } from './pdf-job.ts'
import { selectPages } from './select-pages.ts'

type OpenDocument = typeof getDocumentProxy
type PdfDocument = Awaited<ReturnType<OpenDocument>>
type PdfPage = Awaited<ReturnType<PdfDocument['getPage']>>

/** Pages on their way at the same time: the library waits for itself between the steps of each. */
const PAGES_AT_ONCE = 8
const ERRORS_ONLY = 0
/** Reading ends after this many broken pages: a file may claim thousands that it does not have. */
const BROKEN_PAGES_MAX = 16
/** Images are never decoded: they can take seconds and hundreds of megabytes, and hold no text. */
const IMAGE_PIXELS_MAX = 1
/** Operators of pdf.js that draw text, from `OPS`: showText to nextLineSetSpacingShowText. */
const DRAWS_TEXT: ReadonlySet<number> = new Set([44, 45, 46, 47])

/** Never rejects for what is in the file: everything the library throws of it is a refusal. */
export async function extractText(job: PdfJob, openDocument: OpenDocument): Promise<PdfAnswer> {
  let document: PdfDocument
  try {
    document = await openDocument(job.bytes, { verbosity: ERRORS_ONLY, maxImageSize: IMAGE_PIXELS_MAX })
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
  const broken: string[] = []
  let room = charsMax
  for (let at = 0; at < wanted.length && broken.length < BROKEN_PAGES_MAX; at += PAGES_AT_ONCE) {
    const read = await Promise.allSettled(wanted.slice(at, at + PAGES_AT_ONCE).map((page) => readPage(document, page)))
    for (const [index, outcome] of read.entries()) {
      const page = wanted[at + index] ?? 0
      if (texts.length > 0) room -= PAGE_MARK_CHARS
      if (outcome.status === 'rejected') {
        broken.push(String(outcome.reason))
        texts.push({ page, text: '', problem: 'broken' })
        continue
      }
      const { text } = outcome.value
      if (text.length > room) {
        texts.push({ page, text: text.slice(0, Math.max(0, room)).toWellFormed() })
        return { pages: document.numPages, texts, truncated: true }
      }
      texts.push({ page, ...outcome.value })
      room -= text.length
    }
  }
  if (broken.length > 0 && broken.length === texts.length) {
    const which = broken.length === 1 ? `page ${texts[0]?.page} of the PDF is` : `the pages from ${texts[0]?.page} on are`
    return { refusal: `${which} broken and cannot be read; other pages may be`, cause: broken[0] ?? '' }
  }
  return { pages: document.numPages, texts, truncated: texts.length < wanted.length }
}

async function readPage(document: PdfDocument, number: number): Promise<Omit<PageText, 'page'>> {
  const page = await document.getPage(number)
  const { items } = await page.getTextContent()
  const drawn = joinItems(items.filter((item) => 'str' in item))
  const text = cleaned([drawn.trimEnd(), ...(await annotationLines(page))].filter((part) => part !== '').join('\n'))
  return text === '' && (await drawsText(page)) ? { text, problem: 'unmapped' } : { text }
}

/** Fonts map to any character, NUL and escape sequences included. */
const cleaned = (text: string): string =>
  text
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .toWellFormed()
    .trimEnd()

/** The values of form fields and the texts of notes, which are not part of a page's own text. */
async function annotationLines(page: PdfPage): Promise<string[]> {
  const annotations = (await page.getAnnotations()) as readonly Annotation[]
  return annotations.flatMap(({ subtype, fieldName, fieldValue, password, contentsObj }) => {
    if (subtype === 'Widget') {
      const value = Array.isArray(fieldValue) ? fieldValue.join(', ') : fieldValue
      if (typeof value !== 'string' || value.trim() === '' || value === 'Off' || password) return []
      return [`[field ${oneLine(fieldName ?? '')}: ${value.trim()}]`]
    }
    const note = contentsObj?.str?.trim() ?? ''
    return note === '' ? [] : [`[note: ${note}]`]
  })
}

const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

async function drawsText(page: PdfPage): Promise<boolean> {
  const { fnArray } = await page.getOperatorList()
  return fnArray.some((operator) => DRAWS_TEXT.has(operator))
}

/** The members of pdf.js's annotation data that are read here. */
interface Annotation {
  readonly subtype?: string
  readonly fieldName?: string
  /** A list for a choice of several. */
  readonly fieldValue?: unknown
  readonly password?: boolean
  readonly contentsObj?: { readonly str?: string }
}

function openingRefusal(error: unknown): PdfAnswer {
  const cause = String(error)
  if (/password|encrypt/i.test(cause)) return { refusal: 'the PDF is encrypted; a copy that opens without a password can be read', cause }
  return { refusal: 'the PDF is broken or cut short: it cannot be opened', cause }
}
