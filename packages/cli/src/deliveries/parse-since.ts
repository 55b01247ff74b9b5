/** Reads the time of `--since`. */
import { AppError } from '@sluice/sdk'

const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** Parses an age such as `90m`, `6h` or `2d`, or a date, into a time in milliseconds. Throws `invalid_request` for any other text. */
export function parseSince(text: string): number {
  const [, count, unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? []
  if (count !== undefined) return Date.now() - Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS]
  const atMs = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(atMs))
    throw new AppError('invalid_request', `--since wants 90m, 6h, 2d or a date such as 2026-01-31T08:00:00Z, not '${text}'`)
  return atMs
}
