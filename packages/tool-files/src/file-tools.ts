/** The tools `file_read`, `file_write` and `file_list`. The workspace rejects paths that lead outside of it. */
import { isFileOfOthers } from '@sluice/kit'
import { AppError, buildHint, defineTool, type Host, howToGet, type Tool, type WorkspaceEntry, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { numberLines, selectLines } from './number-lines.ts'

const FILE_BYTES_MAX = 10 * 1024 * 1024
const CONTENT_CHARS_MAX = 4 * 1024 * 1024
const PATH_CHARS_MAX = 4096
/** How far a file is searched for a NUL byte, which text files do not have. */
const SNIFFED_BYTES = 8192

const pathInput = (description: string) => v.pipe(v.string(), v.minLength(1), v.maxLength(PATH_CHARS_MAX), v.description(description))

/** A PDF is seldom written by the user. */
const isFromOthers = (path: string): boolean => isFileOfOthers(path) || /\.pdf$/i.test(path)

/** `file_read`: the numbered lines of a text file, or of the text of a PDF where the build can read PDFs. */
export const fileRead = (host: Host): Tool =>
  defineTool({
    name: 'file_read',
    description: 'Reads a text file (or the text of a PDF) in the workspace, with line numbers. The file can have at most 10 MiB.',
    risk: 'read',
    decider: 'asker',
    egress: false,
    untrusted: ({ path }) => (isFromOthers(path) ? `file ${path}` : undefined),
    input: v.object({
      path: pathInput('The file, relative to the workspace'),
      offset: v.optional(v.pipe(whole(1), v.description('First line to return, counted from 1')), 1),
      limit: v.optional(v.pipe(whole(1, 10_000), v.description('The largest number of lines to return')), 2000),
    }),
    async run({ path, offset, limit }, { workspace, signal, report }) {
      const bytes = await workspace.read(path, { bytesMax: FILE_BYTES_MAX })
      const isPdf = startsWith(bytes, '%PDF-')
      const text = isPdf ? await pdfText(host, bytes, signal) : plainText(path, bytes)
      report?.({ data: selectLines(text, { offset, limit }).join('\n'), ...(isPdf && { untrusted: `PDF ${path}` }) })
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
  if (bytes.subarray(0, SNIFFED_BYTES).includes(0)) {
    throw new AppError('invalid_request', `'${path}' is a binary file of ${bytes.length} bytes, not text`)
  }
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

/** Quotes a name that contains line breaks or other invisible characters, so that each entry stays on one line. */
const onOneLine = (name: string): string => (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(name) ? JSON.stringify(name) : name)
