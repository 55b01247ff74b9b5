/** The tools `file_read`, `file_write` and `file_list`. The workspace rejects paths that lead outside of it. */
import { isFileOfOthers } from '@sluice/kit'
import { AppError, buildHint, defineTool, type Host, howToGet, type Tool, type WorkspaceEntry, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { numberLines, selectBytes, selectLines } from './number-lines.ts'
import { CONTENT_CHARS_MAX, FILE_BYTES_MAX, isFromOthers, isPicture, onOneLine, pathInput, refuseBinary } from './text-file.ts'

/** `file_read`: the numbered lines of a text file, or of the text of a PDF where the build can read PDFs. */
export const fileRead = (host: Host): Tool =>
  defineTool({
    name: 'file_read',
    description:
      'Reads a text file (or a picture, or the text of a PDF) in the workspace, with line numbers. A long answer says how to read on.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: ({ path }) => (isFromOthers(path) ? `file ${path}` : undefined),
    input: v.object({
      path: pathInput('The file, relative to the workspace'),
      offset: v.optional(v.pipe(whole(1), v.description('First line to return, counted from 1')), 1),
      limit: v.optional(v.pipe(whole(1, 10_000), v.description('The largest number of lines to return')), 2000),
      bytes: v.optional(
        v.pipe(
          v.string(),
          v.regex(/^\d{1,12}-\d{1,12}$/, 'must be a range such as 0-7999'),
          v.description('The bytes of a long line to return instead of lines, such as 0-7999'),
        ),
      ),
    }),
    async run({ path, offset, limit, bytes: range }, { workspace, signal, report }) {
      const bytes = await workspace.read(path, { bytesMax: FILE_BYTES_MAX })
      if (isPicture(bytes)) {
        return `[The picture ${path}, ${Math.ceil(bytes.length / 1024)} KiB. It is shown below to a model that reads pictures, up to 5 MiB.]`
      }
      const isPdf = startsWith(bytes, '%PDF-')
      const text = isPdf ? await pdfText(host, bytes, signal) : plainText(path, bytes)
      const source = isPdf && { untrusted: `PDF ${path}` }
      if (range !== undefined) {
        const [first = 0, last = 0] = range.split('-').map(Number)
        const selected = selectBytes(text, first, last)
        report?.({ data: selected.text, ...source })
        return `${selected.text}\n${selected.footer}`
      }
      report?.({ data: selectLines(text, { offset, limit }).join('\n'), ...source })
      return numberLines(text, { offset, limit })
    },
  })

/** `file_write`: writes a text into a file and replaces its content. */
export const fileWrite: Tool = defineTool({
  name: 'file_write',
  description: 'Writes a text file in the workspace and replaces the whole file. Missing folders are created.',
  risk: 'write',
  decider: 'asker',
  egress: false,
  untrusted: false,
  input: v.object({
    path: pathInput('The file, relative to the workspace'),
    content: v.pipe(v.string(), v.maxLength(CONTENT_CHARS_MAX), v.description('The whole new content')),
  }),
  async run({ path, content }, { workspace }) {
    const bytes = new TextEncoder().encode(content)
    await workspace.write(path, bytes)
    return `Wrote ${bytes.length} bytes to ${path}`
  },
})

/** `file_list`: the entries of one folder. */
export const fileList: Tool = defineTool({
  name: 'file_list',
  description: 'Lists one folder of the workspace, sorted by name: files with their size in bytes, folders with a slash at the end.',
  risk: 'read',
  decider: 'asker',
  egress: false,
  // Senders choose names of files.
  untrusted: ({ path }) => (isFileOfOthers(path) ? `folder ${path}` : undefined),
  input: v.object({
    path: v.optional(pathInput('The folder, relative to the workspace; the workspace itself when absent'), '.'),
    limit: v.optional(v.pipe(whole(1, 1000), v.description('The largest number of entries to return')), 200),
  }),
  async run({ path, limit }, { workspace }) {
    const { entries, more } = await workspace.list(path, { limit })
    if (entries.length === 0) return '[The folder is empty]'
    const lines = entries.map(entryText)
    if (more) lines.push(`[Only the first ${entries.length} entries are shown; raise limit to see more]`)
    return lines.join('\n')
  },
})

const startsWith = (bytes: Uint8Array, prefix: string): boolean => Buffer.from(bytes.subarray(0, prefix.length)).equals(Buffer.from(prefix))

function plainText(path: string, bytes: Uint8Array): string {
  refuseBinary(path, bytes)
  return new TextDecoder().decode(bytes)
}

async function pdfText(host: Host, bytes: Uint8Array, signal: AbortSignal): Promise<string> {
  const read = host.service('pdfText')
  if (!read) {
    const build = buildHint('tool-pdf')
    throw new AppError('not_compiled', `This build cannot read PDFs; to read them, ${howToGet('tool-pdf')}`, {
      fields: { feature: 'tool-pdf', build },
    })
  }
  const pages = await read(bytes, { signal })
  if (pages.every((text) => text === '')) return `[This PDF of ${pages.length} pages has no text: its pages are images or empty]`
  return pages.map((text, index) => `[Page ${index + 1}]\n${text}`).join('\n')
}

function entryText({ name, kind, bytes }: WorkspaceEntry): string {
  const shown = onOneLine(name)
  if (kind === 'file') return `${shown}  ${bytes} bytes`
  if (kind === 'folder') return `${shown}/`
  return kind === 'link' ? `${shown}  (link, not followed)` : `${shown}  (not a regular file)`
}
