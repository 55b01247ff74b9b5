/**
 * Splits a shell command into its simple commands, as `sh` does. Refuses every construct that would make the shell run or
 * open something that the text does not spell out: expansions, substitutions, redirections, subshells and background jobs.
 */
import { AppError } from '@sluice/sdk'

export interface Word {
  /** The word without its quotes. */
  readonly text: string
  /** The index in `text` of the first unquoted `*`, `?`, `[` or `{`; -1 without one. */
  readonly patternAt: number
  /** True if no part of the word is quoted. */
  readonly plain: boolean
}

/** The words of one simple command: assignments, program, arguments. */
export type Segment = readonly Word[]

/** True for a word that sets a variable when it comes before the program. */
export const isAssignment = ({ text }: Word): boolean => /^[A-Za-z_]\w*\+?=/.test(text)

/** The characters that end an unquoted word. Other Unicode spaces are part of a word. */
const ENDS_WORD = ' \t\n;&|<>()'

const refuse = (construct: string): never => {
  throw new AppError('forbidden', `The command has ${construct}, which the shell tool does not allow`)
}

/** Returns the simple commands, without the empty ones between separators. Throws `forbidden` and names the construct to avoid. */
export function splitCommand(command: string): Segment[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern finds control characters
  if (/[\0-\x08\x0b-\x1f\x7f]/.test(command)) return refuse('a control character')
  const segments: Word[][] = [[]]
  let at = 0

  const endSegment = () => {
    if (segments.at(-1)?.length) segments.push([])
  }
  while (at < command.length) {
    const next = command[at]
    const pair = command.slice(at, at + 2)
    if (next === ' ' || next === '\t') at++
    else if (pair === '\\\n') at += 2
    else if (next === '#') at = endOfLine(command, at)
    else if (pair === '&&' || pair === '||') {
      endSegment()
      at += 2
    } else if (next === ';' || next === '\n' || next === '|') {
      endSegment()
      at++
    } else if (next === '&') refuse("a background job ('&')")
    else if (next === '(' || next === ')') refuse('an unquoted parenthesis')
    else if (next === '<' || next === '>') at = skipRedirection(command, at)
    else {
      const { word, end } = readWord(command, at)
      // A digit right before a redirection is its descriptor. Shells differ on more than one digit.
      const isDescriptor = word.plain && /^\d+$/.test(word.text) && /[<>]/.test(command[end] ?? '')
      if (isDescriptor && word.text.length > 1) refuse('a descriptor above 9')
      if (!isDescriptor) segments.at(-1)?.push(word)
      at = end
    }
  }
  return segments.filter((segment) => segment.length > 0)
}

const endOfLine = (command: string, at: number): number => {
  const end = command.indexOf('\n', at)
  return end < 0 ? command.length : end
}

/** Returns the end of the redirection at `at`. Throws `forbidden` unless it goes to /dev/null or merges two descriptors. */
function skipRedirection(command: string, at: number): number {
  const operator = /^(?:>>|>\||>&|<&|>|<(?![<>]))[ \t]*/.exec(command.slice(at))?.[0] ?? refuse("a redirection other than '>' and '<'")
  const start = at + operator.length
  const begins = command[start]
  if (begins === undefined || begins === '#' || ENDS_WORD.includes(begins)) return refuse('a redirection to nothing')
  const { word, end } = readWord(command, start)
  const isMerge = operator[1] === '&' && /^[012-]$/.test(word.text)
  const isNull = operator[1] !== '&' && word.text === '/dev/null'
  return isMerge || isNull ? end : refuse('a redirection to a file (only /dev/null and merges such as 2>&1 are possible)')
}

/** Reads the word that begins at `start`, with its quoted parts. */
function readWord(command: string, start: number): { word: Word; end: number } {
  let text = ''
  let patternAt = -1
  let plain = true
  let at = start
  while (at < command.length) {
    const next = command[at] ?? ''
    if (ENDS_WORD.includes(next)) break
    if (next === '$') return refuse("a '$' outside single quotes")
    if (next === '`') return refuse('a backtick')
    if (next === "'" || next === '"') {
      const quoted = next === "'" ? readSingle(command, at) : readDouble(command, at)
      text += quoted.text
      at = quoted.end
      plain = false
    } else if (next === '\\') {
      const escaped = command[at + 1] ?? refuse('a backslash at its end')
      if (escaped !== '\n') {
        text += escaped
        plain = false
      }
      at += 2
    } else {
      if (patternAt < 0 && '*?[{'.includes(next)) patternAt = text.length
      text += next
      at++
    }
  }
  return { word: { text, patternAt, plain }, end: at }
}

function readSingle(command: string, start: number): { text: string; end: number } {
  const close = command.indexOf("'", start + 1)
  return close < 0 ? refuse('a quote that is not closed') : { text: command.slice(start + 1, close), end: close + 1 }
}

function readDouble(command: string, start: number): { text: string; end: number } {
  let text = ''
  for (let at = start + 1; at < command.length; at++) {
    const next = command[at] ?? ''
    if (next === '"') return { text, end: at + 1 }
    if (next === '$') return refuse("a '$' outside single quotes")
    if (next === '`') return refuse('a backtick')
    if (next !== '\\') text += next
    else {
      const escaped = command[++at] ?? ''
      if (!'$`"\\\n'.includes(escaped)) text += next
      if (escaped !== '\n') text += escaped
    }
  }
  return refuse('a quote that is not closed')
}
