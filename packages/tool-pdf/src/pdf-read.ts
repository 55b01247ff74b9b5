/** `pdf_read`: the text of a PDF in the workspace, page by page. */
import { defineTool, type Tool, type Workspace, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { PAGES_CHARS_MAX, parsePageRanges } from './page-ranges.ts'
import { PDF_BYTES_MAX, type PdfReader } from './pdf-reader.ts'
import { FRAME_CHARS, pdfReport } from './pdf-report.ts'

const CHARS_DEFAULT = 50_000
const CHARS_MAX = 200_000

export const pdfRead = (host: { readonly workspace: Workspace }, reader: PdfReader): Tool =>
  defineTool({
    name: 'pdf_read',
    description:
      'Reads the text of a PDF in the workspace, each page after a mark such as [page 3]. Says how many pages there are and whether text was left out; images are not read.',
    risk: 'read',
    input: v.object({
      path: v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The PDF, relative to the workspace; at most 50 MiB')),
      pages: v.optional(
        v.pipe(v.string(), v.minLength(1), v.maxLength(PAGES_CHARS_MAX), v.description('Which pages, such as 1-3,7 or 20-; default: all')),
      ),
      max_chars: v.optional(v.pipe(whole(1, CHARS_MAX), v.description('How long the answer may be, its marks included')), CHARS_DEFAULT),
    }),
    async run({ path, pages, max_chars }, { signal, report }) {
      const ranges = pages === undefined ? [] : parsePageRanges(pages)
      const bytes = await host.workspace.read(path, { bytesMax: PDF_BYTES_MAX })
      const charsMax = max_chars - Math.min(FRAME_CHARS, Math.floor(max_chars / 2))
      const pdf = await reader.read(bytes, { ranges, charsMax, signal })
      report?.({ data: pdf.texts.map(({ text }) => text).join('\n\n') })
      return pdfReport(pdf)
    },
  })
