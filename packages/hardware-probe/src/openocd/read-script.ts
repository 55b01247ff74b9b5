/** What OpenOCD is told to read memory, and what it says: one line of Tcl for each block, one line of answer. */
import { AppError } from '@sluice/sdk'
import type { Block, Reading } from '../chip-reader.ts'

/** A Tcl expression whose value is `sluice <index> <0: done> <values>`. */
export const readExpression = ({ address, length, width }: Block, index: number): string =>
  `format "sluice %d %d %s" ${index} [catch {read_memory 0x${address.toString(16)} ${width * 8} ${length / width}} sluice] $sluice`

/**
 * What was read, in the order of the blocks. Throws `unavailable` for an OpenOCD too old, `upstream` where it answers
 * with something else.
 */
export function parseReadings(output: string, blocks: readonly Block[]): Reading[] {
  const answers = new Map(
    [...output.matchAll(/^sluice (\d+) (\d+) (.*)$/gm)].map(([, index, code, text = '']) => [Number(index), { code, text }]),
  )
  return blocks.map((block, index) => {
    const answer = answers.get(index)
    if (!answer) throw new AppError('upstream', 'OpenOCD does not say what it has read')
    if (/invalid command name/.test(answer.text)) throw new AppError('unavailable', 'OpenOCD is too old: install 0.12 or newer')
    return answer.code === '0' ? bytesOf(answer.text, block) : undefined
  })
}

function bytesOf(text: string, { length, width }: Block): Uint8Array {
  const values = text.trim().split(/\s+/).map(Number)
  const isWord = (value: number): boolean => Number.isInteger(value) && value >= 0 && value < 2 ** (8 * width)
  if (values.length * width !== length || !values.every(isWord)) throw new AppError('upstream', 'OpenOCD gives values that are no memory')
  const bytes = Buffer.alloc(length)
  for (const [index, value] of values.entries()) bytes.writeUIntLE(value, index * width, width)
  return bytes
}
