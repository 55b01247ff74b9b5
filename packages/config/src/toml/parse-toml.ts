/** Parses TOML 1.0 into plain data, or throws a problem with line and column. */
import { DEPTH_MAX } from './key-path.ts'
import { configError } from './problem.ts'
import { syntaxProblem } from './syntax-problem.ts'
import { dataOf, readDocument } from './toml-document.ts'

export const TOML_BYTES_MAX = 1024 * 1024
/** The largest number of open brackets, those in texts included. A parser keeps state for each, which a hostile file could grow to a gigabyte. */
const OPEN_MAX = 1000

/** The character that a decoder writes for bytes that are not UTF-8. A file that needs it can write its escape. */
const UNDECODED = '\ufffd'
/** TOML ends lines with LF or CR LF. The parser also accepts a single CR, which programs show differently. */
const BARE_CR = /\r(?!\n)/

/** Removes a byte order mark. */
export const withoutMark = (text: string): string => (text.charCodeAt(0) === 0xfeff ? text.slice(1) : text)

/**
 * Returns the plain data of a file: dates as `Date`, whole numbers beyond 2^53 as `bigint`, `__proto__` as an ordinary key.
 * Throws `config_invalid` for a text that is not TOML or was not UTF-8, or that is larger than `TOML_BYTES_MAX` or nested deeper than
 * `DEPTH_MAX`.
 */
export async function parseToml(text: string, file: string): Promise<Record<string, unknown>> {
  const body = withoutMark(text)
  const bytes = Buffer.byteLength(body)
  if (bytes > TOML_BYTES_MAX) {
    throw configError([{ file, key: '', message: `the file has ${bytes} bytes; at most ${TOML_BYTES_MAX} are read` }])
  }
  refuseAt(body.indexOf(UNDECODED), 'the file is not in UTF-8: save it in that encoding')
  refuseAt(body.search(BARE_CR), 'a carriage return must be followed by a line feed: save the file with LF or CR LF line ends')
  const data = opensTooMany(body) ? undefined : await read(body, file)
  if (!data || isTooDeep(data)) {
    throw configError([{ file, key: '', message: `the file nests too deep; at most ${DEPTH_MAX} levels are read` }])
  }
  return data

  function refuseAt(index: number, message: string): void {
    if (index < 0) return
    const before = body.slice(0, index).split('\n')
    throw configError([{ file, line: before.length, column: (before.at(-1) ?? '').length + 1, key: '', message }])
  }
}

async function read(body: string, file: string): Promise<Record<string, unknown>> {
  try {
    return dataOf(await readDocument(body)) as Record<string, unknown>
  } catch (error) {
    throw configError([await syntaxProblem(file, body, error)])
  }
}

function opensTooMany(body: string): boolean {
  let open = 0
  for (let at = 0; at < body.length && open <= OPEN_MAX; at++) {
    const char = body[at]
    if (char === '[' || char === '{') open += 1
    else if ((char === ']' || char === '}') && open > 0) open -= 1
  }
  return open > OPEN_MAX
}

/** Works level by level, because recursion could overflow the stack. */
function isTooDeep(data: unknown): boolean {
  let level: unknown[] = [data]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > DEPTH_MAX) return true
    level = level.flatMap((value) => (isContainer(value) ? Object.values(value) : [])).filter(isContainer)
  }
  return false
}

const isContainer = (value: unknown): value is object => typeof value === 'object' && value !== null && !(value instanceof Date)
