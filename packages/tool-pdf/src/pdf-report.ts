/** The pages of a PDF as text for the model. */
import type { PageProblem, PageText, PdfText } from './pdf-job.ts'

/** The most characters that the lines around the pages take. */
export const FRAME_CHARS = 300

const WITHOUT_TEXT: Readonly<Record<PageProblem | 'none', string>> = {
  none: '[no text]',
  broken: '[broken page]',
  unmapped: '[unreadable fonts]',
}
const EXPLAINED: Readonly<Record<PageProblem | 'none', string>> = {
  none: 'pages without text are empty or images, such as scans; images are not read',
  broken: 'broken pages cannot be read',
  unmapped: 'some fonts do not say which characters they draw, so their text cannot be read',
}

/** First a line of facts, then the pages, last why pages have no text and where a cut answer goes on. */
export function pdfReport({ pages, texts, truncated }: PdfText): string {
  const chars = texts.reduce((sum, { text }) => sum + text.length, 0)
  const facts = `[pages: ${pages}, chars: ${chars}, truncated: ${truncated}]`
  if (chars === 0 && !truncated)
    return `${facts}\n[There is no text ${texts.length === pages ? 'in this PDF' : 'on the pages asked for'}: ${explain(texts)}]`
  const cut = truncated ? texts.at(-1) : undefined
  const whole = cut ? texts.slice(0, -1) : texts
  const lines = [facts, ...whole.map(({ page, text, problem }) => mark(page, text || WITHOUT_TEXT[problem ?? 'none']))]
  if (cut) lines.push(mark(cut.page, cut.text))
  const textless = whole.filter(({ text }) => text === '')
  if (textless.length > 0) lines.push(`[${explain(textless)}]`)
  if (cut) lines.push(`[cut on page ${cut.page} of ${pages}: ask for pages ${cut.page}- or a larger max_chars to see more]`)
  return lines.join('\n')
}

const explain = (textless: readonly PageText[]): string =>
  [...new Set(textless.map(({ problem }) => EXPLAINED[problem ?? 'none']))].join('; ')

const mark = (page: number, text: string): string => `[page ${page}]\n${text}`
