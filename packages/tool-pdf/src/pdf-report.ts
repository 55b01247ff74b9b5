/** What was read of a PDF, as text for the model. */
import type { PdfText } from './pdf-job.ts'

/** The lines around the pages take at most so many characters. */
export const FRAME_CHARS = 250

/** First a line of facts, then the pages, last what to do about what is missing. */
export function pdfReport({ pages, texts, truncated }: PdfText): string {
  const chars = texts.reduce((sum, { text }) => sum + text.length, 0)
  const facts = `[pages: ${pages}, chars: ${chars}, truncated: ${truncated}]`
  if (chars === 0 && !truncated) return `${facts}\n${noText(texts.length, pages)}`
  const shown = texts.map(({ page, text }) => `[page ${page}]\n${text || '[no text: an image or an empty page]'}`)
  const last = texts.at(-1)
  const rest =
    truncated && last ? [`[cut on page ${last.page} of ${pages}: ask for pages ${last.page}- or a larger max_chars to see more]`] : []
  return [facts, ...shown, ...rest].join('\n')
}

const noText = (read: number, pages: number): string => {
  const where = read === pages ? 'in this PDF' : `on the ${read} pages asked for`
  return `[There is no text ${where}: the pages are images, such as scans, or empty. Images are not read.]`
}
