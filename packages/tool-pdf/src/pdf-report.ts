/** What was read of a PDF, as text for the model. */
import type { PdfText } from './pdf-job.ts'

/** The lines around the pages take at most so many characters. */
export const FRAME_CHARS = 300

const NO_TEXT = '[no text]'
const NO_PAGE_HAS_ANY = 'the pages are images, such as scans, or empty; images are not read'
const WITHOUT_TEXT = '[pages without text are images, empty or broken; images are not read]'

/** First a line of facts, then the pages, last what is to be known about what is missing. */
export function pdfReport({ pages, texts, truncated }: PdfText): string {
  const chars = texts.reduce((sum, { text }) => sum + text.length, 0)
  const facts = `[pages: ${pages}, chars: ${chars}, truncated: ${truncated}]`
  if (chars === 0 && !truncated)
    return `${facts}\n[There is no text ${texts.length === pages ? 'in this PDF' : 'on the pages asked for'}: ${NO_PAGE_HAS_ANY}]`
  const cut = truncated ? texts.at(-1) : undefined
  const whole = cut ? texts.slice(0, -1) : texts
  const lines = [facts, ...whole.map(({ page, text }) => mark(page, text || NO_TEXT))]
  if (cut) lines.push(mark(cut.page, cut.text))
  if (whole.some(({ text }) => text === '')) lines.push(WITHOUT_TEXT)
  if (cut) lines.push(`[cut on page ${cut.page} of ${pages}: ask for pages ${cut.page}- or a larger max_chars to see more]`)
  return lines.join('\n')
}

const mark = (page: number, text: string): string => `[page ${page}]\n${text}`
