/** Extracts the text of a PDF page by page. Runs in the worker, because the file decides how much time and memory it takes. */
import type { getDocumentProxy } from 'unpdf'
import { joinItems } from './join-items.ts'
import { PAGE_MARK_CHARS, type PageRange, type PageText, type PdfAnswer, type PdfJob, type Refusal } from './pdf-job.ts'

type OpenDocument = typeof getDocumentProxy
type PdfDocument = Awaited<ReturnType<OpenDocument>>
type PdfPage = Awaited<ReturnType<PdfDocument['getPage']>>

/** The members of pdf.js's annotation data that are read here. */
interface Annotation {
  readonly subtype?: string
  readonly fieldName?: string
  /** A list for a field that allows several choices. */
  readonly fieldValue?: unknown
  readonly password?: boolean
  readonly contentsObj?: { readonly str?: string }
}

/** Looking up the pages of a longer document takes longer than reading them. */
const PAGES_MAX = 10_000
/** Pages that are read in parallel, because the library yields to the event loop between the steps of a page. */
const PAGES_AT_ONCE = 8
const ERRORS_ONLY = 0
/** Reading stops after this many broken pages: a file may claim thousands of pages that do not exist. */
const BROKEN_PAGES_MAX = 16
/** Prevents decoding of images, which takes seconds and hundreds of megabytes and yields no text. */
const IMAGE_PIXELS_MAX = 1
/** The operators of pdf.js that draw text, from `OPS`: showText to nextLineSetSpacingShowText. */
const DRAWS_TEXT: ReadonlySet<number> = new Set([44, 45, 46, 47])

/** Returns a refusal for every error that the library throws because of the file. */
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

function openingRefusal(error: unknown): Refusal {
  const cause = String(error)
  if (/password|encrypt/i.test(cause)) return { refusal: 'The PDF is encrypted; provide a copy that opens without a password', cause }
  return { refusal: 'The PDF is broken or cut short: it cannot be opened', cause }
}

/** Returns the numbers of the pages in `ranges`, ascending and without duplicates. A range may end after the last page, but not begin there. */
export function selectPages(ranges: readonly PageRange[], pages: number): number[] | Refusal {
  if (pages <= 0) return { refusal: 'The PDF is broken: it has no pages' }
  if (pages > PAGES_MAX) return { refusal: `The PDF has ${pages} pages; at most ${PAGES_MAX} are supported` }
  const beyond = ranges.find(({ first }) => first > pages)
  if (beyond) return { refusal: `There is no page ${beyond.first}: the PDF has ${pages} ${pages === 1 ? 'page' : 'pages'}` }
  const wanted = ranges.length === 0 ? [{ first: 1, last: pages }] : ranges
  const found = new Set<number>()
  for (const { first, last } of wanted) {
    for (let page = first; page <= Math.min(last, pages); page++) found.add(page)
  }
  return [...found].sort((a, b) => a - b)
}

async function readPages(document: PdfDocument, wanted: readonly number[], charsMax: number): Promise<PdfAnswer> {
  const texts: PageText[] = []
  const broken: string[] = []
  let charsLeft = charsMax
  for (let at = 0; at < wanted.length && broken.length < BROKEN_PAGES_MAX; at += PAGES_AT_ONCE) {
    const outcomes = await Promise.allSettled(wanted.slice(at, at + PAGES_AT_ONCE).map((page) => readPage(document, page)))
    for (const [index, outcome] of outcomes.entries()) {
      const page = wanted[at + index] ?? 0
      if (texts.length > 0) charsLeft -= PAGE_MARK_CHARS
      if (outcome.status === 'rejected') {
        broken.push(String(outcome.reason))
        texts.push({ page, text: '', problem: 'broken' })
        continue
      }
      const { text } = outcome.value
      if (text.length > charsLeft) {
        texts.push({ page, text: text.slice(0, Math.max(0, charsLeft)).toWellFormed() })
        return { pages: document.numPages, texts, truncated: true }
      }
      texts.push({ page, ...outcome.value })
      charsLeft -= text.length
    }
  }
  if (broken.length > 0 && broken.length === texts.length) return allBroken(texts, broken[0] ?? '')
  return { pages: document.numPages, texts, truncated: texts.length < wanted.length }
}

function allBroken(texts: readonly PageText[], cause: string): Refusal {
  const first = texts[0]?.page
  const which = texts.length === 1 ? `Page ${first} of the PDF is` : `The pages of the PDF from ${first} on are`
  return { refusal: `${which} broken and cannot be read; other pages may be readable`, cause }
}

async function readPage(document: PdfDocument, number: number): Promise<Omit<PageText, 'page'>> {
  const page = await document.getPage(number)
  const { items } = await page.getTextContent()
  const drawn = joinItems(items.filter((item) => 'str' in item))
  const text = withoutControls([drawn.trimEnd(), ...(await annotationLines(page))].filter((part) => part !== '').join('\n'))
  return text === '' && (await drawsText(page)) ? { text, problem: 'unmapped' } : { text }
}

/** A font may map its glyphs to any character, including NUL, escape sequences and lone surrogates. */
const withoutControls = (text: string): string =>
  text
    .replace(/[^\P{Cc}\n\t]/gu, '')
    .toWellFormed()
    .trimEnd()

/** Returns the values of form fields and the texts of notes, which the page's own text does not contain. */
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
