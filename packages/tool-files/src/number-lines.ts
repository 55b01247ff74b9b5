/** Formats text as numbered lines, or a range of its bytes, followed by a line that says which part of the text is shown. */
import { SHOWN_CHARS_MAX } from './text-file.ts'

export interface LineRange {
  /** The first line, counted from 1. */
  readonly offset: number
  /** The largest number of lines. */
  readonly limit: number
}

/** A longer line is described, with its place for a reading by bytes. */
export const LINE_CHARS_MAX = 8000
const BEGINNING_CHARS = 100

/** Numbers the lines of a range, up to the largest size of an answer. A line break at the end of the text does not start another line. */
export function numberLines(text: string, range: LineRange): string {
  if (text === '') return '[The file is empty]'
  const { offset } = range
  const total = linesOf(text).length
  const selected = selectLines(text, range)
  if (selected.length === 0) return `[No lines in range, file has ${total} lines]`
  const shown: string[] = []
  let chars = 0
  let start = indexOfLine(text, offset)
  let startByte = Buffer.byteLength(text.slice(0, start))
  for (const line of selected) {
    const numbered = `${offset + shown.length}: ${line.length > LINE_CHARS_MAX ? longLine(line, startByte) : line}`
    chars += numbered.length + 1
    if (chars > SHOWN_CHARS_MAX) break
    shown.push(numbered)
    const next = text.indexOf('\n', start) + 1
    startByte += Buffer.byteLength(text.slice(start, next))
    start = next
  }
  const last = offset + shown.length - 1
  const more = shown.length < selected.length ? `; read on with offset=${last + 1}` : ''
  return [...shown, shown.length === total ? `[${total} lines total]` : `[Lines ${offset}-${last} of ${total}${more}]`].join('\n')
}

/** Returns the lines of a range, without numbers. */
export const selectLines = (text: string, { offset, limit }: LineRange): string[] => linesOf(text).slice(offset - 1, offset - 1 + limit)

/** Returns a range of the bytes of a text in UTF-8, of whole characters and not longer than the largest answer. */
export function selectBytes(text: string, first: number, last: number): { readonly text: string; readonly footer: string } {
  const bytes = Buffer.from(text)
  if (first >= bytes.length) return { text: '', footer: `[No bytes in range, file has ${bytes.length} bytes]` }
  const start = characterAt(bytes, first)
  const asked = Math.min(last + 1, start + SHOWN_CHARS_MAX, bytes.length)
  // A range inside of one character shows that character.
  const end = [characterAt(bytes, asked), asked + 1, asked + 2, asked + 3].find((at) => at > start && !isContinuation(bytes[at])) ?? asked
  return { text: bytes.toString('utf8', start, end), footer: `[Bytes ${start}-${end - 1} of ${bytes.length}]` }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Returns the place of the first byte of the character at `at`. */
function characterAt(bytes: Uint8Array, at: number): number {
  let start = at
  while (start > 0 && isContinuation(bytes[start])) start--
  return start
}

function longLine(line: string, start: number): string {
  const length = Buffer.byteLength(line)
  const beginning = JSON.stringify(line.slice(0, BEGINNING_CHARS).toWellFormed())
  const part = `${start}-${start + Math.min(length, LINE_CHARS_MAX) - 1}`
  return `[A line of ${length} bytes, ${start}-${start + length - 1} of the file. It begins with ${beginning}. Read parts of it, such as bytes="${part}", or search it with grep]`
}

/** Returns the index in the text at which a line begins. */
function indexOfLine(text: string, number: number): number {
  let at = 0
  for (let line = 1; line < number; line++) at = text.indexOf('\n', at) + 1
  return at
}

function linesOf(text: string): string[] {
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines
}
