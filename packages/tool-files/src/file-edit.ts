/** The tool `file_edit`: replaces exact texts in a file, all of them or none. */
import { SerialQueue } from '@sluice/kit'
import { AppError, defineTool, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import { CONTENT_CHARS_MAX, FILE_BYTES_MAX, pathInput, refuseBinary } from './text-file.ts'

const EDITS_MAX = 100
const EDITS_WAITING_MAX = 64
const REPLACEMENTS_MAX = 100_000
/** The largest number of lines that a text names. */
const LINES_SHOWN_MAX = 10

interface Edit {
  readonly old_text: string
  readonly new_text: string
  readonly all: boolean
}

const editInput = v.object({
  old_text: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(CONTENT_CHARS_MAX),
    v.description('The text to replace, exactly as in the file'),
  ),
  new_text: v.pipe(v.string(), v.maxLength(CONTENT_CHARS_MAX)),
  all: v.optional(v.pipe(v.boolean(), v.description('Replaces every occurrence')), false),
})

/** Returns the tool. Edits of one daemon run one after the other, so that none loses the change of another. */
export const fileEdit = (): Tool => {
  const queue = new SerialQueue({ name: 'file edits', tasksMax: EDITS_WAITING_MAX })
  return defineTool({
    name: 'file_edit',
    description: 'Replaces texts in a text file, in order. Each old_text must occur exactly once. If one does not, nothing is written.',
    risk: 'write',
    decider: 'asker',
    egress: false,
    // The result and the errors have numbers of lines, and no text of the file.
    untrusted: false,
    input: v.object({
      path: pathInput('The file, relative to the workspace'),
      edits: v.pipe(v.array(editInput), v.minLength(1), v.maxLength(EDITS_MAX)),
    }),
    run: ({ path, edits }, { workspace, signal }) =>
      queue.run(async () => {
        const before = exactText(path, await workspace.read(path, { bytesMax: FILE_BYTES_MAX }))
        const { text, count, lines } = applyEdits(path, before, edits)
        const bytes = new TextEncoder().encode(text)
        if (bytes.length > FILE_BYTES_MAX)
          throw new AppError('too_large', `'${path}' would have ${bytes.length} bytes; at most ${FILE_BYTES_MAX} are possible`)
        await workspace.write(path, bytes)
        const made = count === 1 ? '1 replacement' : `${count} replacements`
        return `Edited ${path}: ${made}, at ${linesText({ count, lines: lines.slice(0, LINES_SHOWN_MAX) })}`
      }, signal),
  })
}

/** Returns the text with every byte in it. Throws for a file that would not be the same after it was read and written. */
function exactText(path: string, bytes: Uint8Array): string {
  refuseBinary(path, bytes)
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new AppError('invalid_request', `'${path}' is not UTF-8, so an edit would change other characters: convert it first`)
  }
}

interface Edited {
  readonly text: string
  readonly count: number
  /** The lines of the first replacements, in the text at the moment of each. */
  readonly lines: readonly number[]
}

/** Makes the edits one after the other. Throws `invalid_request` for one that does not fit, and `too_large` for a result that is. */
export function applyEdits(path: string, before: string, edits: readonly Edit[]): Edited {
  let text = before
  let count = 0
  const lines: number[] = []
  for (const [at, given] of edits.entries()) {
    const { old_text, new_text, all } = withBreaksOf(text, given)
    const name = `edits[${at}].old_text`
    if (old_text === new_text) throw new AppError('invalid_request', `${name} and new_text are the same: there is nothing to replace`)
    const found = occurrences(text, old_text)
    if (found.count === 0) throw new AppError('invalid_request', `${name} does not occur in '${path}'. ${hint(text, old_text)}`)
    if (found.count > 1 && !all) {
      const where = `occurs ${found.count} times in '${path}', at ${linesText(found)}`
      throw new AppError('invalid_request', `${name} ${where}. Add neighbouring lines to it, or set all = true`)
    }
    count += found.count
    const length = text.length + found.count * (new_text.length - old_text.length)
    if (count > REPLACEMENTS_MAX || length > FILE_BYTES_MAX)
      throw new AppError('too_large', `${name} occurs ${found.count} times in '${path}': replacing all of them makes too much text`)
    lines.push(...found.lines)
    text = replacedAt(text, found.places, { length: old_text.length, by: new_text })
  }
  return { text, count, lines }
}

/** Models write line breaks as LF. In a file that has only CRLF, an edit keeps the breaks of the file. */
function withBreaksOf(text: string, edit: Edit): Edit {
  if (!text.includes('\r\n') || /(?<!\r)\n/.test(text)) return edit
  const crlf = (given: string) => given.replace(/\r?\n/g, '\r\n')
  return { ...edit, old_text: crlf(edit.old_text), new_text: crlf(edit.new_text) }
}

/**
 * Returns where a text occurs, without overlaps, in linear time: the search of the engine takes the product of both lengths for texts that
 * repeat themselves. https://en.wikipedia.org/wiki/Knuth-Morris-Pratt_algorithm
 */
function placesOf(text: string, wanted: string): readonly number[] {
  const places: number[] = []
  // For each length of a beginning of `wanted`, how much of it begins `wanted` again at its end.
  const again = new Int32Array(wanted.length + 1)
  const next = (matched: number, code: number): number => {
    let length = matched
    while (length > 0 && wanted.charCodeAt(length) !== code) length = again[length] ?? 0
    return wanted.charCodeAt(length) === code ? length + 1 : 0
  }
  for (let at = 1; at < wanted.length; at++) again[at + 1] = next(again[at] ?? 0, wanted.charCodeAt(at))
  for (let at = 0, matched = 0; at < text.length; at++) {
    matched = next(matched, text.charCodeAt(at))
    if (matched < wanted.length) continue
    places.push(at + 1 - wanted.length)
    matched = 0
  }
  return places
}

interface Occurrences {
  readonly count: number
  /** The lines of the first ones, counted from 1. */
  readonly lines: readonly number[]
}

function occurrences(text: string, wanted: string): Occurrences & { readonly places: readonly number[] } {
  const places = placesOf(text, wanted)
  return { count: places.length, lines: linesOf(text, places), places }
}

/** Returns the lines of the first places, counted from 1. */
function linesOf(text: string, places: readonly number[]): readonly number[] {
  let line = 1
  let from = 0
  return places.slice(0, LINES_SHOWN_MAX).map((at) => {
    line += breaksIn(text.slice(from, at))
    from = at
    return line
  })
}

function replacedAt(text: string, places: readonly number[], { length, by }: { readonly length: number; readonly by: string }): string {
  const parts: string[] = []
  let from = 0
  for (const at of places) {
    parts.push(text.slice(from, at), by)
    from = at + length
  }
  return [...parts, text.slice(from)].join('')
}

function breaksIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++
  return count
}

/** Says where a text stands that differs only in spaces, or where its first line stands. */
function hint(text: string, wanted: string): string {
  const hay = `\n${trimmedLines(text)}\n`
  const needle = trimmedLines(wanted).trim()
  const similar = needle === '' ? NONE : occurrences(hay, `\n${needle}\n`)
  if (similar.count > 0) return `The same text with other spaces is at ${linesText(similar)}: read it there, and copy it exactly`
  const [firstLine = ''] = needle.split('\n', 1)
  const first = firstLine === '' ? NONE : occurrences(hay, `\n${firstLine}\n`)
  if (first.count > 0) return `Its first line is at ${linesText(first)}, and the lines after it differ: read them there`
  return 'Read the file again, and copy the text exactly'
}

const NONE = { count: 0, lines: [] } as const

/** Returns the text without spaces at the ends of lines, and with single spaces in them. */
const trimmedLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim().replace(/\s+/g, ' '))
    .join('\n')

function linesText({ count, lines }: { readonly count: number; readonly lines: readonly number[] }): string {
  if (count === 1) return `line ${lines[0]}`
  return `lines ${lines.join(', ')}${count > lines.length ? ' and others' : ''}`
}
