/** One line of the log as text, as the daemon writes it at a terminal and as `sluice logs` prints it. */
import { printableLine } from '@sluice/sdk'

/** The parts of a line that a terminal colours. */
export type Painted = 'debug' | 'info' | 'warn' | 'error' | 'name'

export interface LogEntry {
  /** The time in ISO 8601. */
  readonly time: string
  readonly level: Exclude<Painted, 'name'>
  readonly component?: string | undefined
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>>
}

const LINE_CHARS_MAX = 65_536

/** Returns the line without a line break. It contains no control characters except the ones that `paint` adds. */
export function logText({ time, level, component, message, fields }: LogEntry, paint: (what: Painted, text: string) => string): string {
  const values = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : ` ${paint('name', `${printableLine(name)}=`)}${valueText(value)}`,
  )
  const label = paint(level, level.toUpperCase().padEnd(5))
  const origin = component === undefined ? '' : `[${printableLine(component)}] `
  const line = `${time} ${label} ${origin}${printableLine(message)}${values.join('')}`
  return line.length > LINE_CHARS_MAX ? `${line.slice(0, LINE_CHARS_MAX)}…` : line
}

const valueText = (value: unknown): string => {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return typeof value === 'string' && /[\s"=]|^$/.test(text) ? printableLine(JSON.stringify(text)) : printableLine(text)
}
