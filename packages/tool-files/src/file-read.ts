/** `file_read`: the lines of a text file, numbered, or the text of a PDF. */
import { AppError, buildHint, defineTool, type Host, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { linesOf, numberLines } from './number-lines.ts'
import { pathInput } from './path.ts'

const FILE_BYTES_MAX = 10 * 1024 * 1024
/** Where a text file would have shown a NUL byte if it had any. */
const SNIFFED_BYTES = 8192

export const fileRead = (host: Pick<Host, 'workspace' | 'service'>): Tool =>
  defineTool({
    name: 'file_read',
    description: 'Reads a text file (or the text of a PDF) in the workspace. Each line comes back with its number; at most 10 MiB.',
    risk: 'read',
    input: v.object({
      path: pathInput('The file, relative to the workspace'),
      offset: v.optional(v.pipe(whole(1), v.description('First line to return, counted from 1')), 1),
      limit: v.optional(v.pipe(whole(1, 10_000), v.description('How many lines to return at most')), 2000),
    }),
    async run({ path, offset, limit }, { signal, report }) {
      const bytes = await host.workspace.read(path, { bytesMax: FILE_BYTES_MAX })
      const text = startsWith(bytes, '%PDF-') ? await pdfText(host, bytes, signal) : plainText(path, bytes)
      report?.({ data: linesOf(text, { offset, limit }).join('\n') })
      return numberLines(text, { offset, limit })
    },
  })

const startsWith = (bytes: Uint8Array, prefix: string): boolean => Buffer.from(bytes.subarray(0, prefix.length)).equals(Buffer.from(prefix))

function plainText(path: string, bytes: Uint8Array): string {
  if (bytes.subarray(0, SNIFFED_BYTES).includes(0)) {
    throw new AppError('invalid_request', `'${path}' is not text but ${bytes.length} bytes of something else`)
  }
  return new TextDecoder().decode(bytes)
}

async function pdfText(host: Pick<Host, 'service'>, bytes: Uint8Array, signal: AbortSignal): Promise<string> {
  const read = host.service('pdfText')
  if (!read) {
    const build = buildHint('tool-pdf')
    throw new AppError('not_compiled', `this build cannot read PDFs; build one that can: ${build}`, {
      fields: { feature: 'tool-pdf', build },
    })
  }
  const pages = await read(bytes, { signal })
  if (pages.every((text) => text === '')) return `[There is no text in this PDF of ${pages.length} pages: they are images, or empty]`
  return pages.map((text, at) => `[Page ${at + 1}]\n${text}`).join('\n')
}
