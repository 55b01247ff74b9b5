/** Prints one entry for a person: its fields, its texts, and short forms of texts that come from outside. */
import type { TurnRow } from '@sluice/sdk'
import type { Output } from './context.ts'

/** The largest number of characters that a table shows of a name, a text and an error. */
export const NAME_CHARS_MAX = 40
export const TEXT_CHARS_MAX = 60
export const ERROR_CHARS_MAX = 80

/** Prints a line for each field that has a value, with aligned values. The further lines of a value are indented under its first. */
export function printFields(out: Output, fields: Readonly<Record<string, string | null | undefined>>): void {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  const indent = `\n${' '.repeat(width + 2)}`
  for (const [name, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === '') continue
    out.print(`${out.style('dim', name.padEnd(width))}  ${value.replaceAll('\n', indent)}`)
  }
}

/** Prints a text of any length under a heading. */
export function printBlock(out: Output, heading: string, text: string): void {
  out.print('')
  out.print(out.style('bold', heading))
  out.print(text)
}

/** Formats a time in RFC 3339 form; null stays null. */
export const formatTime = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString())

/** Formats the id of a turn with its status, model and error in one line. */
export function formatTurn(turnId: string | null, turn: Pick<TurnRow, 'status' | 'model' | 'error'> | null): string | null {
  if (turnId === null) return null
  if (!turn) return `${turnId} (no longer kept)`
  return [turnId, turn.status, turn.model, turn.error && `${turn.error.code}: ${turn.error.message}`].filter(Boolean).join(', ')
}
