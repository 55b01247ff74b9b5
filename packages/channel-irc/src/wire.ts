/** The lines of IRC. See RFC 1459, section 2.3, and https://ircv3.net/specs/extensions/message-tags. None of these functions throws. */

import { isUtf8 } from 'node:buffer'

/** A parsed line. */
export interface Line {
  readonly tags: ReadonlyMap<string, string>
  /** The nick of the sender, or the name of the server; empty when the line names none. */
  readonly nick: string
  /** The whole source, `nick!user@host`; empty when the line names none. */
  readonly source: string
  /** In upper case; numerics have three digits. */
  readonly command: string
  readonly params: readonly string[]
}

const ESCAPED: Readonly<Record<string, string>> = { ':': ';', s: ' ', '\\': '\\', r: '\r', n: '\n' }
const ESCAPES: Readonly<Record<string, string>> = { ';': '\\:', ' ': '\\s', '\\': '\\\\', '\r': '\\r', '\n': '\\n' }

/** Parses a line without its end; undefined for a line without a command. */
export function parseLine(line: string): Line | undefined {
  let rest = line
  /** Takes the word before the next space. */
  const word = (): string => {
    const end = rest.indexOf(' ')
    const taken = end === -1 ? rest : rest.slice(0, end)
    rest = end === -1 ? '' : withoutSpaces(rest.slice(end))
    return taken
  }
  const tags = rest.startsWith('@') ? parseTags(word().slice(1)) : new Map<string, string>()
  const source = rest.startsWith(':') ? word().slice(1) : ''
  const command = word().toUpperCase()
  if (command === '') return undefined
  const params: string[] = []
  while (rest !== '' && !rest.startsWith(':')) params.push(word())
  if (rest.startsWith(':')) params.push(rest.slice(1))
  return { tags, nick: /^[^!@]*/.exec(source)?.[0] ?? '', source, command, params }
}

function withoutSpaces(text: string): string {
  let at = 0
  while (text[at] === ' ') at += 1
  return text.slice(at)
}

function parseTags(text: string): Map<string, string> {
  const tags = new Map<string, string>()
  for (const tag of text.split(';')) {
    const [key = '', ...value] = tag.split('=')
    const plain = value.join('=').replaceAll(/\\(.?)/gs, (_, character: string) => ESCAPED[character] ?? character)
    if (key !== '') tags.set(key, plain)
  }
  return tags
}

/** Returns the tags as the beginning of a line; empty without tags. */
export function tagText(tags: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(tags).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${value.replaceAll(/[;\\ \r\n]/g, (character) => ESCAPES[character] ?? '')}`],
  )
  return given.length === 0 ? '' : `@${given.join(';')} `
}

/** The longest line that is read: 8,191 bytes of tags and 512 of the rest, with room for servers that allow longer lines. */
const LINE_BYTES_MAX = 32_768

/** Splits the bytes of a connection into lines. A character is never cut, because a line is decoded as a whole. */
export class LineSplitter {
  #rest: Buffer = Buffer.alloc(0)

  /** Returns the lines that are complete now; undefined when a line is longer than any server may send. */
  take(bytes: Buffer): readonly string[] | undefined {
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const lines: string[] = []
    let start = 0
    for (let end = all.indexOf(10); end !== -1; end = all.indexOf(10, start)) {
      const line = textOf(all.subarray(start, end))
      lines.push(line.endsWith('\r') ? line.slice(0, -1) : line)
      start = end + 1
    }
    this.#rest = all.subarray(start)
    return this.#rest.length > LINE_BYTES_MAX ? undefined : lines
  }
}

/** Servers pass on what clients write, and older clients write Latin-1. */
const textOf = (line: Buffer): string => line.toString(isUtf8(line) ? 'utf8' : 'latin1')

/** Compares names as servers do, at least for ASCII letters. */
export const folded = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
