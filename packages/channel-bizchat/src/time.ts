/** Moments as the provider writes them: seconds or milliseconds since 1970, as a number or its digits, or RFC 3339. */
import { valueAt } from '@sluice/kit/foreign-json'

/** More seconds than will pass until the year 2286; what is above it are milliseconds. */
const SECONDS_MAX = 10_000_000_000
const MS_MAX = 8_640_000_000_000_000

/** The first moment at one of the paths, in milliseconds since 1970. */
export function timeAt(json: unknown, ...paths: string[]): number | undefined {
  return paths.map((path) => momentMs(valueAt(json, path))).find((ms) => ms !== undefined)
}

function momentMs(value: unknown): number | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const text = String(value)
  const count = Number(text)
  const isDate = /^\d{4}-\d\d-\d\dT/.test(text)
  const ms = isDate ? Date.parse(text) : Math.round(count > SECONDS_MAX ? count : count * 1000)
  return ms > 0 && ms <= MS_MAX ? ms : undefined
}
