/** The Tcl expressions that make OpenOCD read memory, and the parser for its answers: one line for each block. */
import { AppError } from '@sluice/sdk'
import type { Block, Reading } from '../chip-reader.ts'

/** Returns a Tcl expression whose value is `sluice <index> <code> <values>`; the code 0 is success. */
export const readExpression = ({ address, length, width }: Block, index: number): string =>
  `format "sluice %d %d %s" ${index} [catch {read_memory 0x${address.toString(16)} ${width * 8} ${length / width}} sluice] $sluice`

/**
 * Parses the answers of `readExpression` in the order of the blocks. Throws `unavailable` when OpenOCD is older than 0.12, and
 * `upstream` when an answer is missing or invalid.
 */
export function parseReadings(output: string, blocks: readonly Block[]): Reading[] {
  const answers = new Map(
    [...output.matchAll(/^sluice (\d+) (\d+) (.*)$/gm)].map(([, index, code, text = '']) => [Number(index), { code, text }]),
  )
  return blocks.map((block, index) => {
    const answer = answers.get(index)
    if (!answer) throw new AppError('upstream', 'OpenOCD did not return the memory')
    if (/invalid command name/.test(answer.text)) throw new AppError('unavailable', 'OpenOCD is too old: install 0.12 or newer')
    return answer.code === '0' ? bytesOf(answer.text, block) : undefined
  })
}

function bytesOf(text: string, { length, width }: Block): Uint8Array {
  const values = text.trim().split(/\s+/).map(Number)
  const isWord = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < 2 ** (8 * width)
  if (values.length * width !== length || !values.every(isWord))
    throw new AppError('upstream', `OpenOCD did not return ${length / width} words of memory`)
  const bytes = Buffer.alloc(length)
  for (const [index, value] of values.entries()) bytes.writeUIntLE(value, index * width, width)
  return bytes
}
