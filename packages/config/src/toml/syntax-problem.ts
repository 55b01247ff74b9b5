/** Describes a syntax error for an operator who does not know the grammar of TOML. */
import type { KeyStep } from './key-path.ts'
import type { TomlProblem } from './problem.ts'
import { childOf, type Place, readDocument } from './toml-document.ts'

/** Clearer texts for messages of the parser; other messages are kept. */
const WORDING: Readonly<Record<string, string>> = {
  'Expected comma (,) token': 'a comma is missing here',
  'No newlines are allowed between the curly braces unless they are valid within a value': 'a table in braces must be on one line',
  'Must be a newline': 'only a comment may follow here; the next key needs a line of its own',
  'Empty bare keys are not allowed': 'a name is missing here',
  'Unterminated string constant': 'this text does not end: its closing quote is missing',
  'Unterminated table-key': 'this section header does not end: its closing bracket is missing',
  'Unexpected character': 'this character is not allowed here',
  'Unexpected token': 'this is not allowed here',
  'Invalid character in escape sequence': 'this escape is not known; write a backslash as two, or put the text in single quotes',
  'Control characters (codes < 0x1f and 0x7f) are not allowed':
    'control characters are not allowed; write them as escapes in double quotes',
}
const NO_VALUE = 'Unspecified values are invalid'
/** Errors that the parser reports at the next token, although something is missing after the token before. */
const TOO_LATE: Readonly<Record<string, string>> = {
  [NO_VALUE]: 'a value is missing after the equals sign',
  'Expected equal (=) token': 'a key must be followed by an equals sign and a value',
  'The key, equals sign, and value must be on the same line': 'this line is not complete: a bracket, an equals sign or a value is missing',
  'Unterminated array': 'this array does not end: its closing bracket is missing',
  'Unterminated inline table': 'this table does not end: its closing brace is missing',
}
const DUPLICATE = 'Defining a key multiple times is invalid'
const BAD_VALUE = new Set(['Unexpected character', 'Unexpected token'])
const VALUE_WANTED = 'a value must be a string in quotes, a number, true or false, an array or a table'

/** Describes why `readDocument` refused a text. Never quotes the text, because the line may hold a secret. */
export async function syntaxProblem(file: string, text: string, error: unknown): Promise<TomlProblem> {
  const { lineNumber: line, column: offset, index } = error as { lineNumber?: number; column?: number; index?: number }
  if (!(error instanceof SyntaxError) || line === undefined || offset === undefined || index === undefined) {
    // Not an error of the grammar: the parser's stack overflowed by the nesting or by the length of one text.
    return {
      file,
      key: '',
      message: 'the file cannot be read as TOML: it nests too deep, or a single text in it is too long (over 100000 characters)',
    }
  }
  const isBadValue = BAD_VALUE.has(error.message)
  const late = TOO_LATE[isBadValue && isValueMissing(text.slice(lineBefore(text, index), index)) ? NO_VALUE : error.message]
  if (late) return { file, ...endBefore(text, index), key: '', message: `this is not valid TOML: ${late}` }
  const place = { line, column: offset + 1 }
  if (error.message === DUPLICATE) return { file, ...place, key: '', message: await duplicateSentence(text, index) }
  const wording =
    isBadValue && /=[ \t]*$/.test(text.slice(lineBefore(text, index), index)) ? VALUE_WANTED : (WORDING[error.message] ?? error.message)
  return { file, ...place, key: '', message: `this is not valid TOML: ${wording}` }
}

/** Tells whether the first of two lines ends after an equals sign, or in a comment after it, and the second line is blank. */
function isValueMissing(lines: string): boolean {
  const [first = '', second] = lines.split('\n')
  return second !== undefined && /^[ \t]*$/.test(second) && /=[ \t]*(?:#|\r?$)/.test(first)
}

/** Returns the start of the line before the line of an offset. */
const lineBefore = (text: string, index: number): number => text.lastIndexOf('\n', text.lastIndexOf('\n', index - 1) - 1) + 1

/** Returns the position after the last character before an offset that is not a space. */
function endBefore(text: string, index: number): { line: number; column: number } {
  const before = text.slice(0, index).trimEnd()
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}

/** Finds the first definition of a key by reading the text before the second one, which the parser reports. */
async function duplicateSentence(text: string, index: number): Promise<string> {
  const start = text.lastIndexOf('\n', index - 1) + 1
  const first = await firstLine(text.slice(0, start), text.slice(start).split('\n', 1)[0] ?? '').catch(() => undefined)
  return first ? `this is set twice; the first is in line ${first}` : 'this is set twice'
}

async function firstLine(before: string, line: string): Promise<number | undefined> {
  const header = /^\s*\[\[?([^[\]]*)\]/.exec(line)?.[1]
  const root = await readDocument(before)
  const own = namesOf(await readDocument(`${header ?? line.split('=', 1)[0]} = 0`))
  let place = header === undefined ? lastTable(root) : root
  let line1: number | undefined
  for (const step of own) {
    const next: Place | undefined = childOf(place, step)
    if (!next) break
    line1 = next.name?.loc.start.line ?? line1
    place = next.kind === 'tables' ? (next.items.at(-1) ?? next) : next
  }
  return line1
}

/** Returns the names of the only key in a text. */
function namesOf(place: Place): KeyStep[] {
  const [entry] = place.keys
  return entry ? [entry[0], ...namesOf(entry[1])] : []
}

/** Returns the table that the next line of the text would belong to. */
function lastTable(root: Place): Place {
  let last = root
  const visit = (place: Place): void => {
    if ((place.header?.range[0] ?? -1) > (last.header?.range[0] ?? -1)) last = place
    for (const child of [...place.keys.values(), ...place.items]) visit(child)
  }
  visit(root)
  return last
}
