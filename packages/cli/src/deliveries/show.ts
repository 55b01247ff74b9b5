/** Pieces of what `show` prints for people. */
import type { TurnRow } from '@sluice/sdk'
import type { Output } from '../context.ts'

/** Lines of a name and a value; those without a value are left out. Further lines of a value stand under its first one. */
export function printFields(out: Output, fields: Readonly<Record<string, string | null | undefined>>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  const indent = `\n${' '.repeat(width + 2)}`
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === '') continue
    out.print(`${out.style('dim', name.padEnd(width))}  ${value.replaceAll('\n', indent)}`)
  }
}

/** A text of any length under a heading. */
export function printBlock(out: Output, heading: string, text: string): void {
  out.print('')
  out.print(out.style('bold', heading))
  out.print(text)
}

export const time = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** One line on how a turn stands. */
export function turnLine(turnId: string | null, turn: TurnRow | undefined): string | null {
  if (turnId === null) return null
  if (!turn) return `${turnId} (nothing is kept of it)`
  return [turnId, turn.status, turn.model, turn.error && `${turn.error.code}: ${turn.error.message}`].filter(Boolean).join(', ')
}
