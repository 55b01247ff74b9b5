/**
 * Writes the output of every command. Control characters in a text are printed as escapes, so that text from outside cannot
 * control the terminal or imitate the styles of a command.
 */
import { printable, printableLine } from '@sluice/sdk'
import type { Output, Streams, Style } from './context.ts'
import { asTyped } from './program-name.ts'
import { formatTable } from './table.ts'

const CODES: Record<Style, string> = {
  bold: '1',
  dim: '2',
  italic: '3',
  strike: '9',
  red: '31',
  green: '32',
  yellow: '33',
  cyan: '36',
}
const RESET = '0'

/** Creates the output for these streams. Styles and fitted tables appear only if `stdout` is a terminal. `program` is what a person types to call this program. */
export function createOutput(
  { stdout, stderr }: { readonly stdout: Streams['stdout']; readonly stderr: Streams['stderr'] },
  env: Readonly<Record<string, string | undefined>>,
  program = 'sluice',
): Output {
  const isTerminal = stdout.isTTY === true
  const isColoured = isTerminal && !env.NO_COLOR
  // Marks a style inside a line. The number is unknown outside this process, so a text cannot contain the mark.
  const mark = `\u0000${Math.random()}:`
  const style = (kind: Style, text: string) => (isColoured ? `${mark}${CODES[kind]};${text}${mark}${RESET};` : text)
  const rendered = (text: string): string => {
    const [first = '', ...rest] = text.split(mark)
    return (
      printable(first) +
      rest
        .map((piece) => {
          const end = piece.indexOf(';')
          return `\u001b[${piece.slice(0, end)}m${printable(piece.slice(end + 1))}`
        })
        .join('')
    )
  }
  const print = (line: string) => void stdout.write(`${rendered(line)}\n`)
  return {
    print,
    hint: (line) => print(asTyped(line, program)),
    write(data) {
      if (typeof data === 'string') stdout.write(rendered(data))
      else stdout.write(isTerminal ? printable(Buffer.from(data).toString('utf8')) : data)
    },
    warn: (line) => void stderr.write(`${rendered(asTyped(line, program))}\n`),
    progress: (line) => void (stderr.isTTY === true && stderr.write(`\r\u001b[K${rendered(line)}`)),
    json: (value) => print(JSON.stringify(value, null, 2)),
    style,
    table(headings, rows) {
      const [first = '', ...lines] = formatTable(
        [headings, ...rows].map((row) => row.map(printableLine)),
        isTerminal ? stdout.columns : undefined,
      )
      const headingLines = first === '' ? [] : first.split('\n').map((line) => style('bold', line))
      for (const line of [...headingLines, ...lines]) print(line)
    },
  }
}
