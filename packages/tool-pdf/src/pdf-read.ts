/** The tool `pdf_read`: the text of a PDF in the workspace, page by page. */
import { defineTool, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { PAGES_CHARS_MAX, parsePageRanges } from './page-ranges.ts'
import type { PageProblem, PageText, PdfText } from './pdf-job.ts'
import { PDF_BYTES_MAX, type PdfReader } from './pdf-reader.ts'

const CHARS_DEFAULT = 50_000
const CHARS_MAX = 200_000
/** The maximum length of the lines before and after the pages. */
const FRAME_CHARS = 300

export const pdfRead = (reader: PdfReader): Tool =>
  defineTool({
    name: 'pdf_read',
    description:
      'Reads the text of a PDF in the workspace, each page after a mark such as [page 3]. Says how many pages there are and whether text was left out; images are not read.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: ({ path }) => `PDF ${path}`,
    input: v.object({
      path: v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The PDF, relative to the workspace; at most 50 MiB')),
      pages: v.optional(
        v.pipe(v.string(), v.minLength(1), v.maxLength(PAGES_CHARS_MAX), v.description('Which pages, such as 1-3,7 or 20-; default: all')),
      ),
      max_chars: v.optional(v.pipe(whole(1, CHARS_MAX), v.description('Maximum length of the answer, page marks included')), CHARS_DEFAULT),
    }),
    async run({ path, pages, max_chars }, { workspace, signal, report }) {
      const ranges = pages === undefined ? [] : parsePageRanges(pages)
      const bytes = await workspace.read(path, { bytesMax: PDF_BYTES_MAX })
      const charsMax = max_chars - Math.min(FRAME_CHARS, Math.floor(max_chars / 2))
      const pdf = await reader.read(bytes, { ranges, charsMax, signal })
      report?.({ data: pdf.texts.map(({ text }) => text).join('\n\n') })
      return formatReport(pdf)
    },
  })

/** Shown instead of the text of a page without text. */
const PLACEHOLDER: Readonly<Record<PageProblem | 'none', string>> = {
  none: '[no text]',
  broken: '[broken page]',
  unmapped: '[unreadable fonts]',
}
const EXPLANATION: Readonly<Record<PageProblem | 'none', string>> = {
  none: 'pages without text are empty or images, such as scans; images are not read',
  broken: 'broken pages cannot be read',
  unmapped: 'some fonts do not say which characters they draw, so their text cannot be read',
}

/** Formats a line of facts, the pages, and a footer that explains missing text and says where a cut answer continues. */
function formatReport({ pages, texts, truncated }: PdfText): string {
  const chars = texts.reduce((sum, { text }) => sum + text.length, 0)
  const facts = `[pages: ${pages}, chars: ${chars}, truncated: ${truncated}]`
  if (chars === 0 && !truncated)
    return `${facts}\n[There is no text ${texts.length === pages ? 'in this PDF' : 'on the requested pages'}: ${explain(texts)}]`
  const cut = truncated ? texts.at(-1) : undefined
  const complete = cut ? texts.slice(0, -1) : texts
  const lines = [facts, ...complete.map(({ page, text, problem }) => pageBlock(page, text || PLACEHOLDER[problem ?? 'none']))]
  if (cut) lines.push(pageBlock(cut.page, cut.text))
  const textless = complete.filter(({ text }) => text === '')
  if (textless.length > 0) lines.push(`[${explain(textless)}]`)
  if (cut) lines.push(`[cut on page ${cut.page} of ${pages}: ask for pages ${cut.page}- or a larger max_chars to see more]`)
  return lines.join('\n')
}

const explain = (textless: readonly PageText[]): string =>
  [...new Set(textless.map(({ problem }) => EXPLANATION[problem ?? 'none']))].join('; ')

const pageBlock = (page: number, text: string): string => `[page ${page}]\n${text}`
